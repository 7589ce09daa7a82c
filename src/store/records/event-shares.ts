// An index of the events by share. A share that is full loses its own oldest events, never those of another one, so that
// the developers of a namespace push out neither what happened elsewhere nor what administrators did in it.
import { timestamp } from '../../platform/clock.ts'
import type { Collection } from '../collection.ts'
import { compareKeys } from '../keys.ts'
import { type EventRecord, eventMs } from './events.ts'

/** Agents can make any number of events, so these are apart from those of nodes that are lost or return. */
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
    events.view.subscribe((changes) => {
      const changed = changes.map((change) => ({
        change,
        entry: change.type === 'put' ? change.entry : change.previous,
      }))
      // At the start, changes are in order of their last write. An event may have been repeated after a later one.
      for (const { change, entry } of changed.sort((a, b) => compareKeys(a.entry.key, b.entry.key))) {
        const share = shareOf(events.scopeOf(entry.key), entry.value)
        const keys = this.#keys.get(share) ?? new Set()
        if (change.type === 'put') this.#keys.set(share, keys.add(entry.key))
        else if (keys.delete(entry.key) && keys.size === 0) this.#keys.delete(share)
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
   * The second from which on no event is missing in a list of callers of this audience. A full share has lost the events
   * before its oldest one. Earlier versions had one limit for the whole cluster, so it is never before the oldest event
   * of the cluster.
   */
  completeSince(scope: string, audience: EventRecord['audience'], max: number): string | undefined {
    let first = Number.POSITIVE_INFINITY
    let latest = 0
    for (const [share, keys] of this.#keys) {
      const [oldest = ''] = keys
      first = Math.min(first, eventMs(oldest))
      const isShown = share.startsWith(`${scope} `) && (audience === 'admin' || !share.startsWith(`${scope} admin`))
      if (isShown && keys.size >= max) latest = Math.max(latest, eventMs(oldest))
    }
    if (first === Number.POSITIVE_INFINITY) return undefined
    return timestamp(new Date(Math.ceil(Math.max(first, latest) / 1_000) * 1_000))
  }
}
