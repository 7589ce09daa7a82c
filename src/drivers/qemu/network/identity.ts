// What a VM has of its own, the same at every start. A guest that goes on from another's memory gets these.
import { createHash } from 'node:crypto'
import type { VmSpec } from '../../driver.ts'

/** 52:54:00 is what QEMU's addresses begin with. */
export function macAddress(uid: string, index: number): string {
  const bytes = createHash('sha256').update(`${uid}/${index}`).digest()
  return ['52', '54', '00', ...[0, 1, 2].map((at) => bytes.toString('hex', at, at + 1))].join(':')
}

/** Short, because a guest reads it again and again, and always of one length, because a guest knows the length. */
export const instanceOf = (uid: string): string => createHash('sha256').update(uid).digest('hex').slice(0, 12)

/** What a guest makes its own. Kept with a run until the guest has. */
export interface GuestIdentity {
  readonly hostname: string
  readonly mac0: string
  readonly mac1: string
}

export const guestIdentity = ({ uid, name }: Pick<VmSpec, 'uid' | 'name'>): GuestIdentity => ({
  hostname: name.replace(/[^A-Za-z0-9.-]/g, '-'),
  mac0: macAddress(uid, 0),
  mac1: macAddress(uid, 1),
})

/** As a guest reads it, a line for each: it is to be read by a shell. The time is added when it is asked for. */
export const identityLines = (vm: Pick<VmSpec, 'uid' | 'name'>): string =>
  Object.entries({ instance: instanceOf(vm.uid), ...guestIdentity(vm) })
    .map(([key, value]) => `${key} ${value}\n`)
    .join('')
