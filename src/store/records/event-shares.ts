// An index of the events by share. A share that is full loses its own oldest events, never those of another one, so that
// the developers of a namespace push out neither what happened elsewhere nor what administrators did in it.
import { timestamp } from '../../platform/clock.ts'
import type { Collection } from '../collection.ts'
import { type EventRecord, eventMs } from './events.ts'

/** What agents can repeat is apart from nodes that are lost and return. */
function kindOf({ audience, actor, involved }: EventRecord): 'admin' | 'agents' | 'nodes' | 'dev' {
  if (audience === 'admin') return 'admin'
  if (actor.startsWith('agent:')) return 'agents'
  return involved.kind === 'nodes' ? 'nodes' : 'dev'
}

/** Begins with the scope and the audience. Events of deleted namespaces are in the default namespace. */
const shareOf = (scope: string, event: EventRecord): string =>
  event.namespace === undefined ? `${scope} ${kindOf(event)}` : `${scope} admin ${event.namespace} ${kindOf(event)}`

export class EventShares {
  /** Keys of events by share, oldest first. */
  readonly #keys = new Map<string, Set<string>>()

  constructor(events: Collection<EventRecord>) {
    const keysOf = (share: string): Set<string> => {
      const keys = this.#keys.get(share) ?? new Set()
      this.#keys.set(share, keys)
      return keys
    }
    events.view.subscribe((changes) => {
      for (const change of changes) {
        const entry = change.type === 'put' ? change.entry : change.previous
        if (!entry) continue
        const keys = keysOf(shareOf(events.scopeOf(entry.key), entry.value))
        if (change.type === 'put') keys.add(entry.key)
        else keys.delete(entry.key)
      }
    })
  }

  /** The keys of the events beyond the `max` newest of each share, and of those that are older than `since`. */
  *keysToDelete(max: number, since: Date): Iterable<string> {
    for (const keys of this.#keys.values()) {
      let surplus = keys.size - max
      for (const key of keys) {
        if (surplus-- <= 0 && eventMs(key) >= since.getTime()) break
        yield key
      }
    }
  }

  /**
   * The time from which on every event is kept that callers of this audience see in a list: that of the oldest event in
   * a share with `max` of them. Earlier versions had one limit for the whole cluster, so it is never before the oldest
   * event of the cluster.
   */
  completeSince(scope: string, audience: EventRecord['audience'], max: number): string | undefined {
    let first = Number.POSITIVE_INFINITY
    let latest = 0
    for (const [share, keys] of this.#keys) {
      const [oldest] = keys
      if (oldest === undefined) continue
      first = Math.min(first, eventMs(oldest))
      const isShown = share.startsWith(`${scope} `) && (audience === 'admin' || !share.startsWith(`${scope} admin`))
      if (isShown && keys.size >= max) latest = Math.max(latest, eventMs(oldest))
    }
    return first === Number.POSITIVE_INFINITY ? undefined : timestamp(new Date(Math.max(first, latest)))
  }
}
