// Converts etcd's errors to those of the store.

import { StoreError } from '../store.ts'
import { EtcdFailure } from './client.ts'
import { grpc } from './verdict.ts'

/** `what` is the key or the operation. `isWrite`: something may have been changed. */
export function storeFault(error: unknown, what: string, isWrite: boolean): unknown {
  if (!(error instanceof EtcdFailure)) return error
  const { message, code, perhaps } = error
  if (perhaps && isWrite) return unknown(what, message, error)
  const nothing = isWrite ? 'nothing was written' : 'nothing was read'
  const row = rows.find(([match]) => match(code, message))
  const [, fault, advice] = row ?? lost
  return new StoreError(fault, `${advice(message, what)}; ${nothing}`, { cause: error })
}

export const unknown = (what: string, reason: string, cause?: unknown): StoreError =>
  new StoreError(
    'Unknown',
    `"${what}" may have been written: the answer of etcd was lost (${reason}); check before you try again`,
    { cause },
  )

type Row = readonly [
  (code: number, message: string) => boolean,
  'TooLarge' | 'Unavailable',
  (message: string, what: string) => string,
]

const rows: readonly Row[] = [
  [
    (code, message) => code === grpc.resourceExhausted && message.includes('space exceeded'),
    'Unavailable',
    () =>
      'etcd has used up its quota of space: compact and defragment it, then run "etcdctl alarm disarm", ' +
      'or raise its --quota-backend-bytes',
  ],
  [
    (_, message) => /request is too large|larger than max/.test(message),
    'TooLarge',
    (_, what) => `etcd refuses the size of the request for "${what}": raise its --max-request-bytes`,
  ],
  [
    (code) => code === grpc.permissionDenied,
    'Unavailable',
    (message) => `etcd refuses this user (${message}): grant it a role that reads and writes all of the store's prefix`,
  ],
  [
    (code, message) => code !== 0 && /^etcdserver: (.*auth|user name is empty)/.test(message),
    'Unavailable',
    (message) => `etcd refuses the login (${message}): check user, password-file or cert in the store's address`,
  ],
]

const lost: Row = [
  () => true,
  'Unavailable',
  (message) => `etcd does not answer, or most of its members are down (${message}); svc3 continues when they are back`,
]

export const alarmAdvice = {
  NOSPACE: 'etcd has used up its quota of space: compact and defragment it, then run "etcdctl alarm disarm"',
  CORRUPT: 'etcd reports corrupt data of a member: replace that member',
} as const
