// Fills a disk with the chunks of an image while VMs may read it. A reader waits for the chunks that it lacks, which
// are fetched first. A chunk becomes visible after it was verified and written. As long as there are readers, failures
// are retried.
import type fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { defaultParallel, forEachParallel, type Progress, type WorkOptions } from '../../platform/parallel.ts'
import { retry, retryPolicies } from '../../platform/retry.ts'
import type { ContentSource } from '../content/content.ts'
import { writeSparse } from '../content/sparse-write.ts'
import { firstBeyond, type Segment } from '../format/extents.ts'
import type { Chunk } from '../format/format.ts'
import { FetchOrder } from './fetch-order.ts'
import { unpackChunk } from './unpack.ts'

/**
 * How long prefetching pauses after readers were announced, and after each wait of a reader, because a boot reads in
 * bursts.
 */
const firstTimeoutMs = 2_000
const timeoutMs = 500
/** For this long after a reader waited, only one chunk at a time is prefetched, to leave the network to readers. */
const gentleMs = 5_000
const aheadChunks = 2
/** Additional parallel fetches for chunks that readers wait for, because prefetches may hang. */
const readerSlots = 4

/** Called with the failure of a chunk, and with undefined when one succeeds after that. */
type OnTrouble = (error: Error | undefined) => void

export class DiskFill {
  readonly #file: fs.FileHandle
  readonly #segments: readonly Segment[]
  readonly #endBytes: number
  /** Where each chunk is on the disk, in the order of the disk. */
  readonly #parts = new Map<Chunk, Segment[]>()
  readonly #chunks: readonly Chunk[]
  readonly #places: ReadonlyMap<Chunk, number>
  readonly #order: FetchOrder<Chunk>
  readonly #written = new Set<Chunk>()
  /** In the order of their first read. */
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
    // Nodes that fetch the same image begin at different chunks, so that they can serve each other.
    const first = Math.floor(Math.random() * this.#chunks.length)
    this.#order = new FetchOrder([...this.#chunks.slice(first), ...this.#chunks.slice(0, first)])
    this.#of = this.#chunks.reduce((sum, { storedBytes }) => sum + storedBytes, 0)
  }

  /** Called before VMs read from the disk: pauses prefetching briefly, and retries failures from now on. */
  expectReaders(onTrouble: OnTrouble): void {
    this.#onTrouble = onTrouble
    this.#hold(firstTimeoutMs)
  }

  /** Lets failures end the fill. */
  forgetReaders(): void {
    this.#onTrouble = undefined
  }

  /** Prefetches these chunks first. `places` are their indexes in the order of the disk. */
  expect(places: readonly number[]): void {
    for (const place of places) {
      const chunk = this.#chunks[place]
      if (chunk) this.#order.expect(chunk)
    }
    this.#stir?.()
  }

  /** Returns the places, as `expect` takes them, of the chunks that were read first. */
  firstRead(most: number): number[] {
    return [...this.#read].slice(0, most).map((chunk) => this.#places.get(chunk) ?? 0)
  }

  get progress(): Progress {
    return { bytes: this.#bytes, of: this.#of }
  }

  has(offset: number, length: number): boolean {
    return this.#missing(offset, offset + length).length === 0
  }

  /** Resolves when the range is filled. Returns whether it was filled before the call. Throws if the fill failed. */
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

  /** May be called once. */
  async run(source: ContentSource, { signal, onProgress, parallel = defaultParallel }: WorkOptions): Promise<void> {
    const stop = (): void => this.#stir?.()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      await forEachParallel(this.#next(parallel, signal), parallel + readerSlots, async (chunk) => {
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

  /** Resolves when a reader or a fetch changes something, or after `quietMs`. */
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

  /** A reader that lacks consecutive chunks will probably read the next ones. */
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
    // The last block may extend beyond the disk.
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
