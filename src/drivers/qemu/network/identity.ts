// The identity of a VM, the same at every start. A guest that resumes from the memory of another VM gets it, too.
import { hash } from 'node:crypto'
import type { VmSpec } from '../../driver.ts'

/** 52:54:00 is QEMU's prefix. */
export function macAddress(uid: string, index: number): string {
  const bytes = hash('sha256', `${uid}/${index}`, 'buffer')
  return ['52', '54', '00', ...[0, 1, 2].map((at) => bytes.toString('hex', at, at + 1))].join(':')
}

/** Identifies the VM to its guest. Short because guests poll it; of constant length because guests know the length. */
export const instanceOf = (uid: string): string => hash('sha256', uid).slice(0, 12)

/** What a resumed guest has to adopt. Recorded with a run until the guest has confirmed it. */
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

/** One line each, for a shell in the guest. The time is added when the guest reads it. */
export const identityLines = (vm: Pick<VmSpec, 'uid' | 'name'>): string =>
  Object.entries({ instance: instanceOf(vm.uid), ...guestIdentity(vm) })
    .map(([key, value]) => `${key} ${value}\n`)
    .join('')
