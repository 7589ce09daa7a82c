// Handler of the connections that agents keep open.
import { setImmediate as turn } from 'node:timers/promises'
import type * as api from '../../../api/nodes/agent-connection.ts'
import { refuseWhenStopping } from '../../http/drain.ts'
import { openAgentConnection } from '../../nodes/agent-connections.ts'
import { type GreetingServices, prepareHello } from '../../nodes/greeting.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import type { Operations } from '../../operations/invoke.ts'
import { type LineCallServices, LineCalls } from '../../operations/line-calls.ts'

interface ConnectionServices extends GreetingServices, LineCallServices {
  readonly stopping: AbortSignal
}

export function agentConnection(services: ConnectionServices, operations: () => Operations): HandlersOf<typeof api> {
  const { fleet, stopping, staleness } = services
  const calls = new LineCalls(services, operations)
  const dropAll = (): void => fleet.dropAll()
  stopping.addEventListener('abort', dropAll, { once: true })
  let followed: AbortSignal | undefined
  return {
    async connectAgent({ principal, signal }) {
      const { name: node } = principal
      // After a turn of the event loop, an agent that gave up while it waited counts as disconnected.
      await turn()
      const hello = await prepareHello(services, node, signal)
      refuseWhenStopping(stopping)
      staleness?.lost.throwIfAborted()
      if (staleness && staleness.lost !== followed) {
        followed = staleness.lost
        followed.addEventListener('abort', dropAll, { once: true })
      }
      return openAgentConnection({ fleet, node, hello, take: (line, send) => calls.take(line, principal, send) })
    },
  }
}
