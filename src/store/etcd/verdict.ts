// What the failure of one try means for the next: whether the call was certainly not carried out, and which member to
// try.
import type { CallFailure } from './connection.ts'

export const grpc = {
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const

/**
 * `final`: every member would say the same. `elsewhere`: not carried out; try another member. `login`: repeat with a
 * new token. `unclear`: carried out or not, or may be later. `either`: carried out or not, which a read shows.
 */
type Verdict = 'final' | 'elsewhere' | 'login' | 'unclear' | 'either'

/** What etcd's error messages mean. */
const refusals: readonly (readonly [RegExp, Verdict])[] = [
  [/etcdserver: no leader/, 'elsewhere'],
  [/raft proposal dropped/, 'elsewhere'],
  [/etcdserver: too many requests/, 'elsewhere'],
  [/etcdserver: rpc not supported for learner/, 'elsewhere'],
  [/etcdserver: invalid auth token/, 'login'],
  [/etcdserver: (revision of auth store|auth: revision in header) is old/, 'login'],
  [/etcdserver: user name is empty/, 'login'],
  // etcd carries out a write that was proposed with space left, but returns this if space has run out by then.
  [/etcdserver: mvcc: database space exceeded/, 'either'],
]
const unclearCodes: ReadonlySet<number> = new Set([
  grpc.cancelled,
  grpc.unknown,
  grpc.deadlineExceeded,
  grpc.aborted,
  grpc.internal,
  grpc.unavailable,
  grpc.dataLoss,
])

export function judge({ kind, code, message }: CallFailure): Verdict {
  if (kind === 'unsent') return 'elsewhere'
  if (kind === 'unclear') return 'unclear'
  const known = refusals.find(([words]) => words.test(message))
  return known?.[1] ?? (unclearCodes.has(code) ? 'unclear' : 'final')
}
