// Handler of the connections that agents keep.
import { setImmediate as turn } from 'node:timers/promises'
import type * as api from '../../../api/nodes/agent-connection.ts'
import { refuseWhenStopping } from '../../http/drain.ts'
import { type GreetingServices, prepareHello } from '../../nodes/greeting.ts'
import { openKept } from '../../nodes/kept-connections.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Operations } from '../../operations/invoke.ts'
import { type LineCallServices, LineCalls } from '../../operations/line-calls.ts'

interface ConnectionServices extends GreetingServices, LineCallServices {
  readonly stopping: AbortSignal
}

/** `operations` has those that agents call. */
export function agentConnection(services: ConnectionServices, operations: () => Operations): HandlersOf<typeof api> {
  const { fleet, stopping, staleness } = services
  const calls = new LineCalls(services, operations)
  // Not a listener of each connection: adding one looks at all that are there.
  const dropAll = (): void => fleet.dropAll()
  stopping.addEventListener('abort', dropAll, { once: true })
  let lost: AbortSignal | undefined
  return {
    async connectAgent({ principal, signal }) {
      const { name: node } = principal
      // Whoever waited to be accepted for too long is gone by now, which is seen with the next turn: it costs nothing more.
      await turn()
      const hello = await prepareHello(services, node, signal)
      refuseWhenStopping(stopping)
      staleness?.lost.throwIfAborted()
      if (staleness && staleness.lost !== lost) {
        lost = staleness.lost
        lost.addEventListener('abort', dropAll, { once: true })
      }
      return openKept({ fleet, node, hello, take: (line, send) => calls.take(line, principal, send) })
    },
  }
}
