// Content in a repository of a registry, behind the same interface as a folder of it. Chunks and manifests are blobs; an
// image that is held is an OCI artifact under a tag of its own, which is what keeps its blobs from the registry's garbage
// collection, and what our collector deletes. (docs/decisions/2026-11-15-images.md)
import {
  type ContentStore,
  ContentTooLargeError,
  ContentUnavailableError,
  digestOfBuffer,
  type Listed,
  NoContentError,
  type Stored,
  WrongContentError,
} from '../../images/content/content.ts'
import { DiskFullError } from '../../images/content/temporary-files.ts'
import { digestPattern, type Manifest } from '../../images/format/format.ts'
import { readManifest } from '../../images/pack/stored-manifests.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { encodeArtifact } from '../artifact/artifact.ts'
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import type { Descriptor } from '../artifact/oci-manifest.ts'
import type { BlobContent } from '../artifact/target.ts'
import type { Repository } from '../registry/registry.ts'
import { maxTags } from '../registry/tags.ts'
import { type ContentCache, isNotCached } from './cache.ts'

interface RegistryContentOptions {
  readonly repository: Repository
  readonly cache: ContentCache
  readonly log: Log
  readonly now?: () => number
}

export interface RegistryContent extends ContentStore {
  /** Why it could not be reached when it was asked last; undefined when it could. */
  problem(): string | undefined
  /** Tells which images records name. Holds those that nothing holds: whose tag somebody deleted, or another's collector. */
  mend(manifests: Iterable<string>, signal?: AbortSignal): Promise<number>
}

interface Part {
  readonly start: number
  readonly end: number
}

const mediaType = 'application/octet-stream'
const tagPrefix = 'image-'
const tagForm = /^image-([0-9a-f]{64})$/
const tagOf = (digest: string): string => `${tagPrefix}${hexOf(digest)}`
/** A registry that does not allow deletes may be told to, meanwhile. */
const refusedForMs = 3_600_000
/** Not of one request, but of all. */
const troubles: ReadonlySet<RegistryFault> = new Set([
  'unavailable',
  'unknownHost',
  'rateLimited',
  'unauthorized',
  'untrusted',
  'plain',
])
const refusals: ReadonlySet<RegistryFault> = new Set(['refused', 'forbidden', 'unauthorized'])

export function openRegistryContent(options: RegistryContentOptions): RegistryContent {
  const { repository, cache, log, now = Date.now } = options
  const fetching = new Map<string, Promise<void>>()
  const busy = new Map<string, Promise<unknown>>()
  /** Of images that are held: when this process saw it first, held it, or knew of a record that names it. One for each image. */
  const usedMs = new Map<string, number>()
  let problem: string | undefined
  let refusedMs = Number.NEGATIVE_INFINITY

  /** One request or several, with failures in the words of content. */
  async function asked<T>(digest: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      if (problem !== undefined) log.info('the image registry answers again')
      problem = undefined
      return result
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      if (troubles.has(error.fault)) inTrouble(error)
      throw explained(error, digest)
    }
  }

  function inTrouble(error: RegistryError): void {
    if (problem === undefined) log.warn('the image registry is unavailable', { problem: error.problem })
    problem = error.problem
  }

  /** Work on one image, one after the other. */
  function exclusively<T>(digest: string, work: () => Promise<T>): Promise<T> {
    const before = busy.get(digest) ?? Promise.resolve()
    const result = before.then(work, work)
    const over = result.catch(() => undefined).finally(() => busy.get(digest) === over && busy.delete(digest))
    busy.set(digest, over)
    return result
  }

  const sizeThere = (digest: string, signal?: AbortSignal): Promise<number | undefined> => {
    hexOf(digest)
    return asked(digest, () => repository.size(digest, signal))
  }

  async function send({ digest, bytes }: Stored, content: BlobContent, signal: AbortSignal | undefined): Promise<void> {
    failpoint('images.put.write')
    await asked(digest, () => repository.put({ mediaType, digest, size: bytes }, content, { signal }))
    failpoint('images.put.rename')
  }

  const sendBytes = (stored: Stored, content: Uint8Array, signal: AbortSignal | undefined): Promise<void> =>
    send(stored, { open: (offset) => once(asBuffer(content).subarray(offset)) }, signal)

  const sendCached = (stored: Stored, signal: AbortSignal | undefined): Promise<void> =>
    send(stored, { open: (offset) => cache.open(stored.digest, { start: offset, end: stored.bytes }) }, signal)

  /** Into the cache; once for all who wait. */
  function bring(digest: string, maxBytes: number): Promise<void> {
    const known = fetching.get(digest)
    if (known) return known
    const made = fetch(digest, maxBytes).finally(() => fetching.delete(digest))
    fetching.set(digest, made)
    return made
  }

  async function fetch(digest: string, maxBytes: number): Promise<void> {
    const blob = await described(digest)
    if (blob.size > maxBytes)
      throw new WrongContentError(digest, `has ${blob.size} bytes, more than the ${maxBytes} declared`)
    const content = repository.open(blob, { isUnchecked: true })
    const expected = { digest, bytes: blob.size }
    await asked(digest, () => cache.during({ content, expected }, async () => undefined))
  }

  async function described(digest: string): Promise<Descriptor> {
    const size = await sizeThere(digest)
    if (size === undefined) throw new NoContentError(digest)
    return { mediaType, digest, size }
  }

  async function read(digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer> {
    try {
      return await cache.read(digest, maxBytes, signal)
    } catch (error) {
      if (!isNotCached(error)) throw error
    }
    signal?.throwIfAborted()
    try {
      await bring(digest, maxBytes)
      return await cache.read(digest, maxBytes, signal)
    } catch (error) {
      if (!(error instanceof DiskFullError || error instanceof NoContentError)) throw error
    }
    // No room for it here, or gone again at once: then without keeping it.
    const blob = await described(digest)
    if (blob.size > maxBytes) throw new WrongContentError(digest, `has ${blob.size} bytes, more than declared`)
    return asked(digest, () => repository.read(blob, signal))
  }

  async function* open(digest: string, part?: Part): AsyncGenerator<Buffer> {
    if (yield* openCached(digest, part)) return
    await bring(digest, Number.MAX_SAFE_INTEGER).catch((error: unknown) => {
      if (!(error instanceof DiskFullError)) throw error
    })
    // No room for it here, or gone again at once: then without keeping it.
    if (!(yield* openCached(digest, part))) yield* openThere(digest, part)
  }

  /** Whether it was there. What is open stays readable, whoever makes room. */
  async function* openCached(digest: string, part: Part | undefined): AsyncGenerator<Buffer, boolean> {
    try {
      yield* cache.open(digest, part)
      return true
    } catch (error) {
      if (error instanceof NoContentError) return false
      if (error instanceof WrongContentError) await cache.drop(digest)
      throw error
    }
  }

  async function* openThere(digest: string, part: Part | undefined): AsyncGenerator<Buffer> {
    const blob = await described(digest)
    const { start, end } = part ?? { start: 0, end: blob.size }
    let left = Math.min(end, blob.size) - start
    if (left <= 0) return
    try {
      for await (const piece of repository.open(blob, { offset: start, isUnchecked: part !== undefined })) {
        yield piece.subarray(0, left)
        left -= Math.min(left, piece.length)
        // To its very end where all of it is wanted: there it is checked.
        if (left === 0 && part) return
      }
    } catch (error) {
      throw error instanceof RegistryError ? explained(error, digest) : error
    }
  }

  async function held(signal?: AbortSignal): Promise<readonly string[]> {
    const tags = await asked(undefined, () => repository.tags(signal).catch(ifNoRepository))
    const digests = tags.flatMap((tag) => tagForm.exec(tag)?.[1] ?? []).map((hex) => `sha256:${hex}`)
    const nowMs = now()
    for (const digest of digests) if (!usedMs.has(digest)) usedMs.set(digest, nowMs)
    const there = new Set(digests)
    // Not those that were held since the question was sent.
    for (const [digest, ms] of usedMs) if (!there.has(digest) && ms < nowMs - 60_000) usedMs.delete(digest)
    return digests.sort()
  }

  const hold = (digest: string, manifest: Manifest, signal?: AbortSignal): Promise<void> =>
    exclusively(digest, () =>
      asked(undefined, async () => {
        const artifact = encodeArtifact(manifest)
        for (const [each, bytes] of artifact.own) {
          const stored = { digest: each, bytes: bytes.length }
          if ((await repository.size(each, signal)) !== bytes.length) await sendBytes(stored, bytes, signal)
        }
        await repository.finish(artifact.manifest, tagOf(digest), signal)
        failpoint('images.hold')
        usedMs.set(digest, now())
      }),
    )

  function notDeleted(error: unknown): boolean {
    if (!(error instanceof RegistryError) || !refusals.has(error.fault)) throw error
    refusedMs = now()
    log.warn('the registry refuses deletions: content of deleted images stays there', { problem: error.problem })
    return false
  }

  return {
    folder: cache.folder,
    isShared: true,
    read,
    open,
    hold,
    problem: () => problem,
    async put(content, { signal, maxBytes, digest } = {}) {
      signal?.throwIfAborted()
      if (!(content instanceof Uint8Array)) {
        const kept = { content, options: { signal, ...(maxBytes !== undefined && { maxBytes }) } }
        return cache.during(kept, async (stored) => {
          if ((await sizeThere(stored.digest, signal)) !== stored.bytes) await sendCached(stored, signal)
          return stored
        })
      }
      const stored = { digest: digest ?? (await digestOfBuffer(content)), bytes: content.length }
      if ((await sizeThere(stored.digest, signal)) !== stored.bytes) await sendBytes(stored, content, signal)
      return stored
    },
    async putExpected(expected, content, { signal, digest } = {}) {
      const { digest: wanted, bytes } = expected
      const isBytes = content instanceof Uint8Array
      const isWrong =
        isBytes && (content.length !== bytes || (digest !== wanted && (await digestOfBuffer(content)) !== wanted))
      if (isWrong) throw new WrongContentError(wanted, 'is something else')
      if ((await sizeThere(wanted, signal)) === bytes) return
      if (isBytes) await sendBytes(expected, content, signal)
      else await cache.during({ content, expected, options: { signal } }, () => sendCached(expected, signal))
    },
    has: async (digest) => (await sizeThere(digest)) !== undefined,
    touch: async (digest) => (await sizeThere(digest)) !== undefined,
    size: async (digest) => (await cache.size(digest)) ?? (await sizeThere(digest)),
    deleteUnused: (digest, beforeMs) =>
      exclusively(digest, async () => {
        if (now() - refusedMs < refusedForMs || (usedMs.get(digest) ?? Infinity) >= beforeMs) return false
        return asked(undefined, async () => {
          const found = await repository.resolve(tagOf(digest)).catch(ifNoRepository)
          failpoint('images.delete')
          const isGone = 'digest' in found && (await repository.remove(found.digest).catch(notDeleted))
          if (isGone) usedMs.delete(digest)
          return isGone
        })
      }),
    async list({ after = '', limit }) {
      const digests = (await held()).filter((digest) => digest > after)
      const nowMs = now()
      const items = digests.slice(0, limit).map(
        // The registry frees the bytes, when it likes.
        (digest): Listed => ({ digest, bytes: 0, modifiedMs: usedMs.get(digest) ?? nowMs }),
      )
      return { items, after: digests.length > limit ? items.at(-1)?.digest : undefined }
    },
    async mend(manifests, signal) {
      const named = new Set(manifests)
      const there = new Set(await held(signal))
      // So that their time begins when no record names them any more, and not when they were seen first.
      for (const digest of named) usedMs.set(digest, now())
      // Of so many, not all are listed: what is not there is not known.
      if (there.size >= maxTags) return 0
      let count = 0
      for (const digest of named) {
        if (there.has(digest)) continue
        await hold(digest, await readManifest({ read }, digest, signal), signal)
        count += 1
      }
      return count
    },
  }
}

/** Nothing was ever put into it, or it has no such tag. */
function ifNoRepository(error: unknown): readonly [] {
  if (error instanceof RegistryError && error.fault === 'notFound') return []
  throw error
}

function explained(error: RegistryError, digest: string | undefined): Error {
  if (error.fault === 'notFound' && digest !== undefined) return new NoContentError(digest)
  if (error.fault === 'invalid' && digest !== undefined) return new WrongContentError(digest, error.problem)
  const Kind = error.fault === 'tooLarge' ? ContentTooLargeError : ContentUnavailableError
  return new Kind(`Image registry: ${error.problem}`, { cause: error })
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

const asBuffer = (content: Uint8Array): Buffer => Buffer.from(content.buffer, content.byteOffset, content.byteLength)

/** Only digests become parts of addresses. */
function hexOf(digest: string): string {
  if (!digestPattern.test(digest)) throw new TypeError(`${JSON.stringify(digest.slice(0, 80))} is not a digest`)
  return digest.slice('sha256:'.length)
}
