// What every controller works with: records and the clock. It takes no other input.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Collections } from '../store/records/collections.ts'

export interface Controller {
  readonly collections: Collections
  readonly clock: Clock
  readonly log: Log
}

/** Which agents have their stream open: a node without one gets nothing. */
export interface Presence {
  isOpen(node: string): boolean
  /** Called when a stream opened or ended: of this node, or of any. */
  subscribe(listener: (node?: string) => void): () => void
}
