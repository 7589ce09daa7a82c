// Fills a disk with the chunks of an image, while it may be read already: a reader waits for the chunks that it lacks, and
// those are fetched before all others. Nothing is to be seen of a chunk before all of it was checked and written. While it is
// read, a chunk that cannot be had or written is no end of it: it is tried again until it can.
import type fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { defaultParallel, eachAtOnce, type Progress, type WorkOptions } from '../../platform/parallel.ts'
import { retry, retryPolicies } from '../../platform/retry.ts'
import type { ContentSource } from '../content/content.ts'
import { writeSparse } from '../content/sparse-write.ts'
import { firstBeyond, type Segment } from '../format/extents.ts'
import type { Chunk } from '../format/format.ts'
import { FetchOrder } from './fetch-order.ts'
import { unpackChunk } from './unpack.ts'

/** Nobody fetches unasked before a reader had the time to ask, or so soon after it did: a boot asks again and again. */
const firstTimeoutMs = 2_000
const timeoutMs = 500
/** While a reader has been waiting so lately, one chunk at a time comes unasked: more would take its share of the network. */
const gentleMs = 5_000
const aheadChunks = 2
/** What a reader waits for has this many more places than the rest: those may be taken by what nobody can give. */
const wantedPlaces = 4

/** Why a chunk could not be had; undefined when one has come after that. */
type OnTrouble = (error: Error | undefined) => void

export class DiskFill {
  readonly #file: fs.FileHandle
  readonly #segments: readonly Segment[]
  readonly #endBytes: number
  /** In the order of the disk. */
  readonly #parts = new Map<Chunk, Segment[]>()
  readonly #chunks: readonly Chunk[]
  readonly #places: ReadonlyMap<Chunk, number>
  readonly #order: FetchOrder<Chunk>
  readonly #written = new Set<Chunk>()
  /** By readers, in the order of their first read. */
  readonly #read = new Set<Chunk>()
  readonly #readers = new Map<Chunk, PromiseWithResolvers<void>>()
  #fetching = 0
  #quietUntilMs = 0
  #gentleUntilMs = 0
  #lastMissed = -2
  #stir: (() => void) | undefined
  #onTrouble: OnTrouble | undefined
  #isInTrouble = false
  #failure: Error | undefined
  #bytes = 0
  readonly #of: number

  constructor(file: fs.FileHandle, segments: readonly Segment[], endBytes: number) {
    this.#file = file
    this.#segments = segments
    this.#endBytes = endBytes
    for (const segment of segments) {
      if (segment.chunk === undefined) continue
      const known = this.#parts.get(segment.chunk)
      if (known) known.push(segment)
      else this.#parts.set(segment.chunk, [segment])
    }
    this.#chunks = [...this.#parts.keys()]
    this.#places = new Map(this.#chunks.map((chunk, index) => [chunk, index]))
    // Nodes that fetch the same image at once begin at different places, and have something to pass on to each other.
    const first = Math.floor(Math.random() * this.#chunks.length)
    this.#order = new FetchOrder([...this.#chunks.slice(first), ...this.#chunks.slice(0, first)])
    this.#of = this.#chunks.reduce((sum, { storedBytes }) => sum + storedBytes, 0)
  }

  /** Somebody is about to read from it: what nobody asks for waits a little, and from now on failures are tried again. */
  expectReaders(onTrouble: OnTrouble): void {
    this.#onTrouble = onTrouble
    this.#hold(firstTimeoutMs)
  }

  /** Nobody reads from it any more: it may fail. */
  forgetReaders(): void {
    this.#onTrouble = undefined
  }

  /** Chunks that are likely to be read first, by their places: they come before what nobody asked for. */
  expect(places: readonly number[]): void {
    for (const place of places) {
      const chunk = this.#chunks[place]
      if (chunk) this.#order.expect(chunk)
    }
    this.#stir?.()
  }

  /** Places of the chunks that were read first, at most so many. */
  firstRead(most: number): number[] {
    return [...this.#read].slice(0, most).map((chunk) => this.#places.get(chunk) ?? 0)
  }

  get progress(): Progress {
    return { bytes: this.#bytes, of: this.#of }
  }

  /** Whether all that this part of the disk shows is there. */
  has(offset: number, length: number): boolean {
    return this.#missing(offset, offset + length).length === 0
  }

  /** Until all that this part of the disk shows is there; whether it was. Throws where the fill has failed. */
  async ready(offset: number, length: number, signal: AbortSignal): Promise<boolean> {
    const missing = this.#missing(offset, offset + length)
    if (missing.length === 0) return true
    if (this.#failure) throw this.#failure
    const waits = missing.map((chunk) => {
      const wait = this.#readers.get(chunk) ?? Promise.withResolvers<void>()
      this.#readers.set(chunk, wait)
      this.#order.want(chunk)
      return wait.promise
    })
    this.#readAhead(missing)
    this.#hold(timeoutMs)
    this.#stir?.()
    const { promise, reject } = Promise.withResolvers<never>()
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    await Promise.race([Promise.all(waits), promise]).finally(() => signal.removeEventListener('abort', abort))
    return false
  }

  /** Once. */
  async run(source: ContentSource, { signal, onProgress, parallel = defaultParallel }: WorkOptions): Promise<void> {
    const stop = (): void => this.#stir?.()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      await eachAtOnce(this.#next(parallel, signal), parallel + wantedPlaces, async (chunk) => {
        try {
          await this.#fetch(chunk, source, signal)
        } finally {
          this.#fetching -= 1
          this.#stir?.()
        }
        this.#bytes += chunk.storedBytes
        onProgress?.(this.progress)
        failpoint('images.restore.write')
      })
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      for (const { reject, promise } of this.#readers.values()) {
        promise.catch(() => undefined)
        reject(error)
      }
      throw error
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  async *#next(parallel: number, signal: AbortSignal | undefined): AsyncGenerator<Chunk> {
    while (this.#order.size > 0) {
      signal?.throwIfAborted()
      const nowMs = performance.now()
      const isGentle = nowMs < this.#gentleUntilMs
      const unasked = nowMs >= this.#quietUntilMs && this.#fetching < (isGentle ? 1 : parallel)
      const chunk = this.#order.take({ soon: this.#fetching < 2, unasked })
      if (chunk === undefined) {
        await this.#stirred(this.#quietUntilMs - nowMs)
        continue
      }
      this.#fetching += 1
      yield chunk
    }
  }

  /** Until something was asked for or has come, or it was quiet for so long. */
  #stirred(quietMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = quietMs > 0 ? setTimeout(resolve, Math.ceil(quietMs)) : undefined
    this.#stir = resolve
    return promise.finally(() => clearTimeout(timer))
  }

  #hold(ms: number): void {
    const nowMs = performance.now()
    this.#quietUntilMs = Math.max(this.#quietUntilMs, nowMs + ms)
    this.#gentleUntilMs = Math.max(this.#gentleUntilMs, nowMs + gentleMs)
  }

  #missing(start: number, end: number): Chunk[] {
    const missing = new Set<Chunk>()
    for (let index = firstBeyond(this.#segments, start); index < this.#segments.length; index += 1) {
      const { offset, chunk } = this.#segments[index] as Segment
      if (offset >= end) break
      if (chunk) this.#read.add(chunk)
      if (chunk && !this.#written.has(chunk)) missing.add(chunk)
    }
    return [...missing]
  }

  /** Who lacked one and then the next will go on like that. */
  #readAhead(missing: readonly Chunk[]): void {
    for (const chunk of missing) {
      const index = this.#places.get(chunk) ?? 0
      const isSequential = index === this.#lastMissed + 1 || index === this.#lastMissed + 2
      if (index !== this.#lastMissed && isSequential)
        for (const next of this.#chunks.slice(index + 1, index + 1 + aheadChunks)) this.#order.expect(next)
      this.#lastMissed = index
    }
  }

  async #fetch(chunk: Chunk, source: ContentSource, signal: AbortSignal | undefined): Promise<void> {
    await retry(() => this.#fetchOnce(chunk, source, signal), {
      policy: { ...retryPolicies.background, maxDelayMs: 5_000 },
      signal,
      isRetriable: () => this.#onTrouble !== undefined,
      onWait: ({ error }) => {
        this.#isInTrouble = true
        this.#onTrouble?.(error instanceof Error ? error : new Error(String(error)))
      },
    })
    if (this.#isInTrouble) this.#onTrouble?.(undefined)
    this.#isInTrouble = false
  }

  async #fetchOnce(chunk: Chunk, source: ContentSource, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    const raw = await unpackChunk(source, chunk, signal)
    // A disk may end inside its last block.
    for (const { at, length, offset } of this.#parts.get(chunk) ?? [])
      await writeSparse(this.#file, raw.subarray(at, at + Math.min(length, this.#endBytes - offset)), offset)
    this.#written.add(chunk)
    const wait = this.#readers.get(chunk)
    if (!wait) return
    this.#readers.delete(chunk)
    this.#hold(timeoutMs)
    wait.resolve()
  }
}
