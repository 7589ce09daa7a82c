// Connects an agent: waits for admission, marks its node as ready, claims the node for this server, and prepares the HELLO
// with which the stream begins.
import { ApiError, conflict } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { changeNode } from '../../store/records/vms.ts'
import type { Peers } from '../cluster/server-calls.ts'
import type { SyncQueue } from './admission.ts'
import { type DesiredServices, desiredFor } from './desired.ts'
import { heartbeatSeconds } from './fleet.ts'
import type { PresenceTracker } from './presence.ts'

export interface GreetingServices extends DesiredServices {
  readonly admission: SyncQueue
  readonly presence: PresenceTracker
  readonly peers?: Peers | undefined
  readonly clock: Clock
}

const kind = 'nodes'
/** Roughly the time that a server needs to admit a node. mark-nodes.ts gives a large fleet longer than the maximum. */
const spreadMsPerNode = 4
const maxSpreadMs = 40_000

/** Returns a function that makes the HELLO from the state at its call. `signal` aborts when the agent gives up. */
export async function prepareHello(
  services: GreetingServices,
  name: string,
  signal: AbortSignal,
): Promise<() => AgentMessage> {
  const { collections, admission, presence, peers, clock, log } = services
  if (!collections.nodes.get('', name)?.value.report)
    throw conflict(kind, name, 'has not reported yet', 'Send a report first')
  const claim = await admission.admit(name, async () => {
    assertConnected(name, signal)
    await changeNode(collections, name, (record) =>
      record.isReady ? undefined : { ...record, isReady: true, lastSeenAt: timestamp(clock.now()) },
    )
    return presence.claim(name)
  })
  assertConnected(name, signal)
  log.debug('an agent is connected', { node: name })
  return () => {
    // The agent has connected to another server since, and no longer reads from this one.
    if (!claim.isCurrent())
      throw new ApiError('Conflict', `Node ${name} is connected to another server`, { kind, name })
    const servers = peers && { servers: [...new Set(peers.servers.alive().map(({ apiUrl }) => apiUrl))] }
    const desired = desiredFor(services, name, claim.rev)
    const spreadMs = Math.min(collections.nodes.view.size * spreadMsPerNode, maxSpreadMs)
    return { type: 'HELLO', ...desired, heartbeatSeconds, spreadMs, ...servers }
  }
}

/** An agent that gave up may have another connection already, which must not end for this one. */
function assertConnected(name: string, { aborted }: AbortSignal): void {
  if (aborted) throw new ApiError('ServiceUnavailable', `Node ${name} has disconnected`, { kind, name })
}
