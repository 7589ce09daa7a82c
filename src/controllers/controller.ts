// What every controller works with: records and the clock. It takes no other input.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Collections } from '../store/records/collections.ts'

export interface Controller {
  readonly collections: Collections
  readonly clock: Clock
  readonly log: Log
}
