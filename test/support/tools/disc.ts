// The smallest thing that is a disc: random bytes with the sign of ISO 9660 among them.
import { randomBytes } from 'node:crypto'

const signAt = 0x8001

/** So many bytes, 32,774 at least. */
export function randomDisc(bytes: number): Buffer<ArrayBuffer> {
  const disc = randomBytes(bytes)
  disc.write('CD001', signAt)
  return disc
}
