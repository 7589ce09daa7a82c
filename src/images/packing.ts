// The memory that chunks are packed in: some buffers for what is read, some for what comes out of it, used again and
// again. What comes out can be held by somebody who still sends it; who wants one waits until one is free.
import { type Compression, chunkBytes } from './format.ts'
import { type PackResult, packInThread } from './pack-threads.ts'

export interface PackedChunk {
  /** Good until `release`, and as long as somebody has retained them. */
  readonly bytes: Buffer
  readonly digest: string
  readonly rawDigest: string
  readonly compression: Compression
  /** Undefined: nobody else can have them now. */
  retain(): (() => void) | undefined
  release(): void
}

export interface Packing {
  /** For a chunk that is read. */
  buffer(): Promise<Buffer>
  /** Gives the buffer back when it is done with it. */
  pack(buffer: Buffer, rawBytes: number, isUncompressed: boolean): Promise<PackedChunk>
  /** A buffer that was not needed. */
  giveBack(buffer: Buffer): void
}

/** Results that others may hold beside those that are being stored. */
const heldMost = 4

export function openPacking(parallel: number): Packing {
  const sources = slots(parallel + 1)
  const targets = slots(parallel + 1 + heldMost)
  let held = 0
  return {
    buffer: sources.take,
    giveBack: sources.give,
    async pack(buffer, rawBytes, isUncompressed) {
      const target = await targets.take()
      let result: PackResult
      try {
        result = await packInThread({ raw: buffer.subarray(0, rawBytes), target, isUncompressed })
      } catch (error) {
        targets.give(target)
        throw error
      } finally {
        sources.give(buffer)
      }
      let users = 1
      const leave = (): void => {
        users -= 1
        if (users === 0) targets.give(target)
      }
      return {
        ...result,
        bytes: target.subarray(0, result.storedBytes),
        release: once(leave),
        retain() {
          if (held >= heldMost) return undefined
          held += 1
          users += 1
          return once(() => {
            held -= 1
            leave()
          })
        },
      }
    },
  }
}

/** So many buffers of the length of a chunk, made when they are needed first. */
function slots(most: number) {
  const idle: Buffer[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let made = 0
  return {
    async take(): Promise<Buffer> {
      const known = idle.pop()
      if (known) return known
      if (made === most) return await new Promise((resolve) => waiting.push(resolve))
      made += 1
      return Buffer.from(new SharedArrayBuffer(chunkBytes))
    },
    give(buffer: Buffer): void {
      const next = waiting.shift()
      if (next) next(buffer)
      else idle.push(buffer)
    },
  }
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
