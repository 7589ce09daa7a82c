// Minimal disc content: random bytes with the signature of ISO 9660.
import { randomBytes } from 'node:crypto'

const signAt = 0x8001

/** At least 32,774 bytes. */
export function randomDisc(bytes: number): Buffer<ArrayBuffer> {
  const disc = randomBytes(bytes)
  disc.write('CD001', signAt)
  return disc
}
