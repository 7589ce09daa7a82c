// Whether the guest of a running VM can be reached: what drivers and agents tell, and the VM condition `GuestReachable`.
import * as t from 'typebox'

/** NoAnswer: something accepts connections to the guest, and no SSH greeting comes. */
export const unreachableReasons = [
  'NoAddress',
  'NoRoute',
  'Refused',
  'BlockedByLocalNetwork',
  'OtherGuest',
  'NoAnswer',
] as const
export type UnreachableReason = (typeof unreachableReasons)[number]

export const maxReachMessage = 1_024
const message = t.String({ maxLength: maxReachMessage })

export const GuestReach = t.Union([
  t.Object({ ok: t.Literal(true), message: t.Optional(message) }),
  /** `message` is the last error. */
  t.Object({ reason: t.Enum(unreachableReasons), message }),
])
export type GuestReach = t.Static<typeof GuestReach>
export type Unreachable = Extract<GuestReach, { reason: UnreachableReason }>

export const isUnreachable = (reach: GuestReach | undefined): reach is Unreachable =>
  reach !== undefined && 'reason' in reach
