// The memory that chunks are packed in: some buffers for what is read, some for what comes out of it, used again and
// again. What comes out can be held by somebody who still sends it; who wants one waits until one is free.
import type { Compression } from '../format.ts'
import { defaultParallel } from './parallel.ts'
import { createSlots } from './slots.ts'
import { type PackResult, packInThread } from './threads.ts'

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
const heldMost = 3
const sources = createSlots(defaultParallel + 2)
const targets = createSlots(defaultParallel + 1 + heldMost)
let held = 0

export function openPacking(): Packing {
  return {
    buffer: sources.take,
    giveBack: sources.give,
    async pack(buffer, rawBytes, isUncompressed) {
      const target = await targets.take()
      let result: PackResult
      try {
        result = await packInThread({ kind: 'pack', source: buffer.subarray(0, rawBytes), target, isUncompressed })
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

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
