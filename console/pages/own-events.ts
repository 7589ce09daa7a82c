// Whose events are whose, where names are used again.
import type { Event } from '../../src/api/service/events.ts'

/** Of this one, and not of another that had the name before or has it since. Old events have no uid. */
export const isOwn = ({ involved, at }: Event, uid: string | undefined, since: string): boolean =>
  uid === undefined || involved.uid === undefined ? at >= since : involved.uid === uid
