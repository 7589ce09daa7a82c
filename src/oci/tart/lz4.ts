// Reads Apple's framing of LZ4: `bv41` (raw size, compressed size, a block that may refer to previous ones), `bv4-`
// (size, stored bytes), `bv4$` (end). Keeps one block and the window of previous ones in memory.
import { setImmediate } from 'node:timers/promises'

class BadLz4Error extends Error {
  override readonly name = 'BadLz4Error'
  constructor(problem: string) {
    super(`Cannot read the compressed layer: ${problem}`)
  }
}

/** The greatest distance of a match. */
const windowBytes = 65_536
/** Apple writes blocks of 64 KiB. The limit bounds the memory. */
const maxBlockBytes = 4 * 2 ** 20
const sliceBytes = 2 ** 20

const magic = { compressed: 0x31347662, plain: 0x2d347662, end: 0x24347662 } as const

/** A piece is valid until the next one is requested. Throws unless there are exactly `rawBytes`. */
export async function* decodeAppleLz4(input: AsyncIterable<Buffer>, rawBytes: number): AsyncGenerator<Buffer> {
  const reader = byteReader(input)
  /** Holds the latest output, which matches refer to, and the next block. */
  let buffer = Buffer.allocUnsafe(8 * windowBytes)
  let used = 0
  let total = 0
  let sinceTurn = 0
  const grow = (bytes: number): number => {
    total += bytes
    if (bytes > maxBlockBytes) throw new BadLz4Error(`a block of ${bytes} bytes is more than ${maxBlockBytes}`)
    if (total > rawBytes) throw new BadLz4Error(`it expands past its declared ${rawBytes} bytes`)
    if (used + bytes > buffer.length) {
      const kept = Math.min(used, windowBytes)
      const larger = kept + bytes > buffer.length ? Buffer.allocUnsafe(windowBytes + bytes) : buffer
      buffer.copy(larger, 0, used - kept, used)
      buffer = larger
      used = kept
    }
    return used
  }
  for (;;) {
    const head = (await reader.take(4)).readUInt32LE()
    if (head === magic.end) break
    const size = (await reader.take(4)).readUInt32LE()
    if (head === magic.compressed) {
      const compressedBytes = (await reader.take(4)).readUInt32LE()
      const start = grow(size)
      if (compressedBytes > maxBlockBytes + 65_536) throw new BadLz4Error('a block is compressed to more than it was')
      decodeBlock(await reader.take(compressedBytes), buffer, start, start + size)
    } else if (head === magic.plain) {
      const start = grow(size)
      ;(await reader.take(size)).copy(buffer, start)
    } else throw new BadLz4Error('it has something else where a block should begin')
    yield buffer.subarray(used, used + size)
    used += size
    sinceTurn += size
    if (sinceTurn >= sliceBytes) {
      sinceTurn = 0
      await setImmediate() // Lets the event loop run.
    }
  }
  if (total !== rawBytes) throw new BadLz4Error(`it has ${total} bytes, not the ${rawBytes} declared`)
  if (await reader.hasMore()) throw new BadLz4Error('it has data after its end')
}

/** Fills exactly `start` to `end`. Matches may refer to bytes before `start`. */
function decodeBlock(input: Uint8Array, output: Uint8Array, start: number, end: number): void {
  let from = 0
  let to = start
  while (from < input.length) {
    const token = input[from++] as number
    let literals = token >>> 4
    if (literals === 15) {
      for (let more = 255; more === 255; literals += more) {
        if (from >= input.length) throw damaged()
        more = input[from++] as number
      }
    }
    if (literals > input.length - from || literals > end - to) throw damaged()
    if (literals > 32) {
      output.set(input.subarray(from, from + literals), to)
      from += literals
      to += literals
    } else for (let left = literals; left > 0; left -= 1) output[to++] = input[from++] as number
    // The last sequence has literals only.
    if (from === input.length) break
    if (from + 2 > input.length) throw damaged()
    const distance = (input[from] as number) | ((input[from + 1] as number) << 8)
    from += 2
    let length = (token & 15) + 4
    if (length === 19) {
      for (let more = 255; more === 255; length += more) {
        if (from >= input.length) throw damaged()
        more = input[from++] as number
      }
    }
    if (distance === 0 || distance > to || length > end - to) throw damaged()
    if (distance >= length && length > 32) {
      output.copyWithin(to, to - distance, to - distance + length)
      to += length
    } else if (distance === 1 && length > 32) {
      output.fill(output[to - 1] as number, to, to + length)
      to += length
    } else for (let left = length; left > 0; left -= 1, to += 1) output[to] = output[to - distance] as number
  }
  if (to !== end) throw damaged()
}

const damaged = (): BadLz4Error => new BadLz4Error('a block of it is damaged')

/** Reads exact numbers of bytes from pieces of any size. */
function byteReader(input: AsyncIterable<Buffer>) {
  const iterator = input[Symbol.asyncIterator]()
  let piece: Buffer = Buffer.alloc(0)
  async function next(): Promise<boolean> {
    const { value, done } = await iterator.next()
    if (done) return false
    piece = value
    return true
  }
  return {
    async take(bytes: number): Promise<Buffer> {
      if (piece.length >= bytes) {
        const taken = piece.subarray(0, bytes)
        piece = piece.subarray(bytes)
        return taken
      }
      const taken = Buffer.allocUnsafe(bytes)
      for (let done = 0; done < bytes; ) {
        if (piece.length === 0 && !(await next())) throw new BadLz4Error('it is cut short')
        const copied = piece.copy(taken, done, 0, bytes - done)
        piece = piece.subarray(copied)
        done += copied
      }
      return taken
    },
    /** Also reads the input to its end, where its digest is verified. */
    async hasMore(): Promise<boolean> {
      while (piece.length === 0) if (!(await next())) return false
      return true
    },
  }
}
