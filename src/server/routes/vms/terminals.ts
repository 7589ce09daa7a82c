// Handlers of terminals in VMs.
import { notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/terminals.ts'
import { displayName } from '../../../auth/principal.ts'
import type { Log } from '../../../platform/log.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { serveTerminal } from '../../nodes/terminals.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface TerminalServices {
  readonly collections: Collections
  readonly tunnels: Tunnels
  readonly log: Log
}

export function terminals({ collections, tunnels, log }: TerminalServices): HandlersOf<typeof api> {
  const existing = (namespace: string, name: string): VmRecord => {
    const entry = collections.vms.get(namespace, name)
    if (!entry) throw notFound('vms', name, { namespace })
    return entry.value
  }
  return {
    openTerminal({ params: { namespace, vm }, principal }) {
      const { uid } = existing(namespace, vm)
      return {
        isFramed: true,
        take(socket) {
          log.info('a terminal was opened', { actor: displayName(principal), namespace, name: vm })
          serveTerminal(socket, {
            vm,
            dial: async () => {
              const record = existing(namespace, vm)
              // Another one of the same name is not the one whose password was asked for.
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
