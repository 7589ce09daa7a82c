// A content store in a repository of a registry. Chunks and manifests are blobs, read through a local cache.
// (docs/decisions/2026-11-15-images.md)
import {
  type ContentStore,
  digestOfBuffer,
  NoContentError,
  type Part,
  type Stored,
  WrongContentError,
} from '../../images/content/content.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import type { Log } from '../../platform/log.ts'
import type { Repository } from '../registry/registry.ts'
import { RegistryBlobs } from './blobs.ts'
import type { ContentCache } from './cache.ts'
import { HeldImages } from './held-images.ts'

interface RegistryContentOptions {
  readonly repository: Repository
  readonly cache: ContentCache
  readonly log: Log
  readonly now?: () => number
}

export interface RegistryContent extends ContentStore {
  /** Why the registry was unavailable at the last request; undefined if it was available. */
  problem(): string | undefined
  /** Holds the images that records name and whose tags were deleted in the registry. Returns how many these were. */
  mend(manifests: Iterable<string>, signal?: AbortSignal): Promise<number>
}

export function openRegistryContent(options: RegistryContentOptions): RegistryContent {
  const { repository, cache, log, now = Date.now } = options
  const blobs = new RegistryBlobs(repository, log)
  const images = new HeldImages(blobs, log, now)
  const reader = new CachedReader(blobs, cache)

  const putCached = (stored: Stored, signal: AbortSignal | undefined): Promise<void> =>
    blobs.put(stored, { open: (offset) => cache.open(stored.digest, { start: offset, end: stored.bytes }) }, signal)
  const has = async (digest: string): Promise<boolean> => (await blobs.size(digest)) !== undefined

  return {
    folder: cache.folder,
    isShared: true,
    problem: () => blobs.problem,
    read: (digest, maxBytes, signal) => reader.read(digest, maxBytes, signal),
    open: (digest, part) => reader.open(digest, part),
    async put(content, { signal, maxBytes, digest } = {}) {
      signal?.throwIfAborted()
      if (!(content instanceof Uint8Array)) {
        const kept = { content, options: { signal, ...(maxBytes !== undefined && { maxBytes }) } }
        return cache.during(kept, async (stored) => {
          if ((await blobs.size(stored.digest, signal)) !== stored.bytes) await putCached(stored, signal)
          return stored
        })
      }
      const stored = { digest: digest ?? (await digestOfBuffer(content)), bytes: content.length }
      if ((await blobs.size(stored.digest, signal)) !== stored.bytes) await blobs.putBytes(stored, content, signal)
      return stored
    },
    async putExpected(expected, content, { signal, digest: known } = {}) {
      const { digest, bytes } = expected
      const isBuffer = content instanceof Uint8Array
      const isWrong =
        isBuffer && (content.length !== bytes || (known !== digest && (await digestOfBuffer(content)) !== digest))
      if (isWrong) throw new WrongContentError(digest, 'is something else')
      if ((await blobs.size(digest, signal)) === bytes) return
      if (isBuffer) await blobs.putBytes(expected, content, signal)
      else await cache.during({ content, expected, options: { signal } }, () => putCached(expected, signal))
    },
    has,
    touch: has,
    size: async (digest) => (await cache.size(digest)) ?? (await blobs.size(digest)),
    hold: (digest, manifest, signal) => images.hold(digest, manifest, signal),
    deleteUnused: (digest, beforeMs) => images.deleteUnused(digest, beforeMs),
    list: (page) => images.list(page),
    async mend(manifests, signal) {
      const missing = await images.missing(manifests, signal)
      for (const digest of missing) await images.hold(digest, await readManifest(reader, digest, signal), signal)
      return missing.length
    },
  }
}

/** Reads through the cache, or past it if the disk is full or the content is evicted at once. */
class CachedReader {
  readonly #blobs: RegistryBlobs
  readonly #cache: ContentCache
  /** Per digest, the download that all readers share. */
  readonly #fetching = new Map<string, Promise<void>>()

  constructor(blobs: RegistryBlobs, cache: ContentCache) {
    this.#blobs = blobs
    this.#cache = cache
  }

  async read(digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    try {
      return await this.#cache.read(digest, maxBytes, signal)
    } catch (error) {
      if (!(error instanceof NoContentError || error instanceof WrongContentError)) throw error
    }
    signal?.throwIfAborted()
    try {
      await this.#fetch(digest, maxBytes)
      return await this.#cache.read(digest, maxBytes, signal)
    } catch (error) {
      if (!(error instanceof DiskFullError || error instanceof NoContentError)) throw error
    }
    const blob = await this.#blobs.describe(digest, maxBytes)
    return this.#blobs.request(digest, () => this.#blobs.repository.read(blob, signal))
  }

  async *open(digest: string, part?: Part): AsyncGenerator<Buffer> {
    if (yield* this.#openCached(digest, part)) return
    await this.#fetch(digest, Infinity).catch((error: unknown) => {
      if (!(error instanceof DiskFullError)) throw error
    })
    if (!(yield* this.#openCached(digest, part))) yield* this.#blobs.open(digest, part)
  }

  /** Returns whether the content was cached. An open file stays readable when it is evicted. */
  async *#openCached(digest: string, part: Part | undefined): AsyncGenerator<Buffer, boolean> {
    try {
      yield* this.#cache.open(digest, part)
      return true
    } catch (error) {
      if (error instanceof NoContentError) return false
      if (error instanceof WrongContentError) await this.#cache.drop(digest)
      throw error
    }
  }

  #fetch(digest: string, maxBytes: number): Promise<void> {
    const known = this.#fetching.get(digest)
    if (known) return known
    const fetching = (async () => {
      const blob = await this.#blobs.describe(digest, maxBytes)
      const content = this.#blobs.repository.open(blob, { isUnchecked: true })
      const expected = { digest, bytes: blob.size }
      await this.#blobs.request(digest, () => this.#cache.during({ content, expected }, async () => undefined))
    })().finally(() => this.#fetching.delete(digest))
    this.#fetching.set(digest, fetching)
    return fetching
  }
}
