// How a node is taken in when its agent connects: in its turn, marked as ready, claimed for this server; and the HELLO that its
// stream begins with.
import { ApiError } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { changeNode } from '../../store/records/vms.ts'
import type { Peers } from '../cluster/server-calls.ts'
import type { Admission } from './admission.ts'
import { type DesiredServices, desiredFor } from './desired.ts'
import { heartbeatSeconds } from './fleet.ts'
import type { PresenceTracker } from './presence.ts'

export interface GreetingServices extends DesiredServices {
  readonly admission: Admission
  readonly presence: PresenceTracker
  readonly peers?: Peers | undefined
  readonly clock: Clock
}

const kind = 'nodes'
/** What a server takes for one that comes back, roughly; and nodes are waited for longer than the longest of all. */
const spreadMsOfEach = 4
const longestSpreadMs = 40_000

/** What is returned says HELLO, of the state at that moment: whatever changes later is for the stream. */
export async function prepareHello(
  services: GreetingServices,
  name: string,
  /** Aborts when the agent gives up. */
  signal: AbortSignal,
): Promise<() => AgentMessage> {
  const { collections, admission, presence, peers, clock, log } = services
  if (!collections.nodes.get('', name)?.value.report)
    throw new ApiError('Conflict', `Node ${name} has not reported yet`, { kind, name, hint: 'Send a report first' })
  const claim = await admission.admit(name, async () => {
    assertThere(name, signal)
    await changeNode(collections, name, (record) =>
      record.isReady ? undefined : { ...record, isReady: true, lastSeenAt: timestamp(clock.now()) },
    )
    return presence.claim(name)
  })
  assertThere(name, signal)
  log.debug('an agent is connected', { node: name })
  return () => {
    // The agent has moved to another server meanwhile, and no longer reads this.
    if (!claim.isCurrent())
      throw new ApiError('Conflict', `Node ${name} is connected to another server`, { kind, name })
    const servers = peers && { servers: [...new Set(peers.servers.alive().map(({ apiUrl }) => apiUrl))] }
    const desired = desiredFor(services, name, claim.rev)
    const spreadMs = Math.min(collections.nodes.view.size * spreadMsOfEach, longestSpreadMs)
    return { type: 'HELLO', ...desired, heartbeatSeconds, takesNotes: true, spreadMs, ...servers }
  }
}

/** One that waited for its turn and gave up may be connected by another connection already, which this one would end. */
function assertThere(name: string, { aborted }: AbortSignal): void {
  if (aborted) throw new ApiError('ServiceUnavailable', `Node ${name} has given up`, { kind, name })
}
