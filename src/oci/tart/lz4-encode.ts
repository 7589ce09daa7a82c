// Writes Apple's framing of LZ4: blocks of 64 KiB, each compressed alone (`bv41`) or stored (`bv4-`), then the end
// (`bv4$`). Deterministic, so that unchanged layers keep their digests.
import { setImmediate } from 'node:timers/promises'

const rawBlockBytes = 65_536
const sliceBytes = 2 ** 20
const hashBits = 13
/** Matches have at least four bytes. None begins in the last twelve bytes, and the last five are literals. */
const minMatch = 4
const lastMatchStart = 12
const lastLiterals = 5
/** After this many misses the search takes larger steps, to pass over incompressible data quickly. */
const skipShift = 6

export async function* encodeAppleLz4(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const block = Buffer.allocUnsafe(rawBlockBytes)
  const table = new Uint16Array(2 ** hashBits)
  let used = 0
  let sinceTurn = 0
  for await (const piece of input) {
    for (let at = 0; at < piece.length; ) {
      const copied = piece.copy(block, used, at, at + rawBlockBytes - used)
      used += copied
      at += copied
      if (used < rawBlockBytes) continue
      yield frame(block, table)
      used = 0
      sinceTurn += rawBlockBytes
      if (sinceTurn < sliceBytes) continue
      sinceTurn = 0
      await setImmediate() // Lets the event loop run.
    }
  }
  if (used > 0) yield frame(block.subarray(0, used), table)
  yield Buffer.from('bv4$')
}

const zeros = Buffer.alloc(rawBlockBytes)
let zeroFrame: Buffer | undefined

/** Returns a buffer that the consumer may keep, and must not alter. */
function frame(raw: Buffer, table: Uint16Array): Buffer {
  const isZero = raw.length === rawBlockBytes && raw.equals(zeros)
  if (isZero && zeroFrame) return zeroFrame
  const head = 12
  const out = Buffer.allocUnsafe(head + raw.length)
  const bytes = encodeBlock(raw, out.subarray(head), table)
  if (bytes === 0) {
    const plain = Buffer.allocUnsafe(8 + raw.length)
    plain.write('bv4-', 'latin1')
    plain.writeUInt32LE(raw.length, 4)
    raw.copy(plain, 8)
    return plain
  }
  out.write('bv41', 'latin1')
  out.writeUInt32LE(raw.length, 4)
  out.writeUInt32LE(bytes, 8)
  const framed = out.subarray(0, head + bytes)
  if (isZero) zeroFrame = Buffer.from(framed)
  return framed
}

/** Returns the compressed length, or 0 if that is not shorter. `raw` has at most 64 KiB. */
function encodeBlock(raw: Uint8Array, out: Uint8Array, table: Uint16Array): number {
  const end = raw.length
  const limit = Math.min(out.length, end - 1)
  table.fill(0)
  let anchor = 0
  let to = 0
  let misses = 0
  for (let at = 1; at < end - lastMatchStart; ) {
    const key = word(raw, at)
    const slot = Math.imul(key, 0x9e3779b1) >>> (32 - hashBits)
    const found = table[slot] as number
    table[slot] = at
    if (found >= at || word(raw, found) !== key) {
      at += 1 + (misses++ >> skipShift)
      continue
    }
    misses = 0
    let length = minMatch
    while (at + length < end - lastLiterals && raw[found + length] === raw[at + length]) length += 1
    to = put(raw, anchor, at, out, to, limit, at - found, length)
    if (to === 0) return 0
    at += length
    anchor = at
  }
  return put(raw, anchor, end, out, to, limit, 0, 0)
}

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at] as number) |
  ((bytes[at + 1] as number) << 8) |
  ((bytes[at + 2] as number) << 16) |
  ((bytes[at + 3] as number) << 24)

/** Writes a sequence: literals, and a match unless the distance is 0. Returns its end, or 0 without space. */
function put(
  raw: Uint8Array,
  from: number,
  literalEnd: number,
  out: Uint8Array,
  start: number,
  limit: number,
  distance: number,
  length: number,
): number {
  const literals = literalEnd - from
  const matched = distance === 0 ? 0 : length - minMatch
  const most = start + 1 + literals + Math.ceil((literals + 1) / 255) + 2 + Math.ceil((matched + 1) / 255)
  if (most > limit) return 0
  let to = start
  out[to++] = (Math.min(literals, 15) << 4) | Math.min(matched, 15)
  if (literals >= 15) to = putLength(out, to, literals - 15)
  out.set(raw.subarray(from, literalEnd), to)
  to += literals
  if (distance === 0) return to
  out[to++] = distance & 255
  out[to++] = distance >>> 8
  return matched >= 15 ? putLength(out, to, matched - 15) : to
}

function putLength(out: Uint8Array, start: number, value: number): number {
  let to = start
  let left = value
  for (; left >= 255; left -= 255) out[to++] = 255
  out[to++] = left
  return to
}
