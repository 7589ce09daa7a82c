// The host's ARP table, which says which guest answers at an address.
import { exec } from '../../platform/exec.ts'

/** Returns the hardware addresses of the table for an IPv4 address, written as in tart's config.json. */
export type ReadArp = (address: string) => Promise<readonly string[]>

const entry = / at ([0-9a-f]{1,2}(?::[0-9a-f]{1,2}){5})(?=\s|$)/gi

/** macOS omits leading zeros, and fails for an address without an entry. */
export const arpTable =
  (program = 'arp'): ReadArp =>
  async (address) => {
    const { stdout } = await exec(program, ['-n', address], { timeoutMs: 5_000 }).catch(() => ({ stdout: '' }))
    return [...stdout.matchAll(entry)].map(([, mac = '']) =>
      mac
        .toLowerCase()
        .split(':')
        .map((byte) => byte.padStart(2, '0'))
        .join(':'),
    )
  }
