// Assigns events to objects when names are reused.
import type { Event } from '../../src/api/service/events.ts'

/**
 * Whether an event is about the object with this uid, or, for old events without a uid, is not older than the object.
 */
export const isOwn = ({ involved, at }: Event, uid: string | undefined, since: string): boolean =>
  uid === undefined || involved.uid === undefined ? at >= since : involved.uid === uid
