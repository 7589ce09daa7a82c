// Handlers of terminals in VMs.
import { notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/terminals.ts'
import { displayName } from '../../../auth/principal.ts'
import type { Log } from '../../../platform/log.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { existingIn } from '../../gate/existing.ts'
import { serveTerminal } from '../../nodes/terminals.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface TerminalServices {
  readonly collections: Collections
  readonly tunnels: Tunnels
  readonly log: Log
}

export function terminals({ collections, tunnels, log }: TerminalServices): HandlersOf<typeof api> {
  const existing = existingIn(collections.vms, 'vms')
  return {
    openTerminal({ params: { namespace, vm }, principal }) {
      const { uid } = existing(namespace, vm).value
      return {
        isFramed: true,
        take(socket) {
          log.info('a terminal was opened', { actor: displayName(principal), namespace, name: vm })
          serveTerminal(socket, {
            vm,
            dial: async () => {
              const record = existing(namespace, vm).value
              // The VM may have been deleted and created again while its user typed the password.
              if (record.uid !== uid)
                throw notFound('vms', vm, { namespace, hint: 'The VM was replaced; open a new terminal' })
              return tunnels.dial(record, 'ssh')
            },
          })
        },
        drop: () => undefined,
      }
    },
  }
}
