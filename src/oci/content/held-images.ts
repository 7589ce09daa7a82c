// Images that a repository holds: each is an OCI artifact with one tag. The tag keeps its blobs from the registry's
// garbage collection, and is what svc3's collector deletes.
import type { ContentPage, Listed } from '../../images/content/content.ts'
import { hexOf } from '../../images/content/files.ts'
import type { Manifest } from '../../images/format/format.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { exclusively } from '../../platform/parallel.ts'
import { encodeArtifact } from '../artifact/artifact.ts'
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import { maxTags } from '../registry/tags.ts'
import type { RegistryBlobs } from './blobs.ts'

const tagForm = /^image-([0-9a-f]{64})$/
const tagOf = (digest: string): string => `image-${hexOf(digest)}`
const minuteMs = 60_000
/** How long no deletion is tried after the registry refused one. Its operator may allow them in between. */
const refusedForMs = 60 * minuteMs
const refusals: ReadonlySet<RegistryFault> = new Set(['refused', 'forbidden', 'unauthorized'])

export class HeldImages {
  readonly #blobs: RegistryBlobs
  readonly #log: Log
  readonly #now: () => number
  /** Per image: when this process first saw or held it, or last knew of a record that names it. */
  readonly #usedMs = new Map<string, number>()
  #refusedMs = -Infinity

  constructor(blobs: RegistryBlobs, log: Log, now: () => number) {
    this.#blobs = blobs
    this.#log = log
    this.#now = now
  }

  hold(digest: string, manifest: Manifest, signal?: AbortSignal): Promise<void> {
    const { repository } = this.#blobs
    return this.#exclusively(digest, () =>
      this.#blobs.request(undefined, async () => {
        const artifact = encodeArtifact(manifest)
        for (const [each, bytes] of artifact.own) {
          const stored = { digest: each, bytes: bytes.length }
          if ((await repository.size(each, signal)) !== bytes.length) await this.#blobs.putBytes(stored, bytes, signal)
        }
        await repository.finish(artifact.manifest, tagOf(digest), signal)
        failpoint('images.hold')
        this.#usedMs.set(digest, this.#now())
      }),
    )
  }

  deleteUnused(digest: string, beforeMs: number): Promise<boolean> {
    const { repository } = this.#blobs
    return this.#exclusively(digest, async () => {
      const isUsed = (this.#usedMs.get(digest) ?? Infinity) >= beforeMs
      if (isUsed || this.#now() - this.#refusedMs < refusedForMs) return false
      return this.#blobs.request(undefined, async () => {
        const found = await repository.resolve(tagOf(digest)).catch(ifNotFound)
        failpoint('images.delete')
        const isDeleted = 'digest' in found && (await repository.remove(found.digest).catch(this.#refused))
        if (isDeleted) this.#usedMs.delete(digest)
        return isDeleted
      })
    })
  }

  async list({
    after = '',
    limit,
  }: {
    readonly after?: string | undefined
    readonly limit: number
  }): Promise<ContentPage> {
    const digests = (await this.#held()).filter((digest) => digest > after)
    const nowMs = this.#now()
    const items = digests.slice(0, limit).map(
      // The size is unknown: the registry frees the blobs, at a time of its choice.
      (digest): Listed => ({ digest, bytes: 0, modifiedMs: this.#usedMs.get(digest) ?? nowMs }),
    )
    return { items, after: digests.length > limit ? items.at(-1)?.digest : undefined }
  }

  /** Returns which of the images are not held, and counts all of them as used now. */
  async missing(digests: Iterable<string>, signal?: AbortSignal): Promise<readonly string[]> {
    const named = new Set(digests)
    const held = new Set(await this.#held(signal))
    for (const digest of named) this.#usedMs.set(digest, this.#now())
    // Beyond this number the list of tags is cut, so any image may be held.
    return held.size >= maxTags ? [] : [...named].filter((digest) => !held.has(digest))
  }

  async #held(signal?: AbortSignal): Promise<readonly string[]> {
    const tags = await this.#blobs.request(undefined, () => this.#blobs.repository.tags(signal).catch(ifNotFound))
    const digests = tags.flatMap((tag) => tagForm.exec(tag)?.[1] ?? []).map((hex) => `sha256:${hex}`)
    const nowMs = this.#now()
    for (const digest of digests) if (!this.#usedMs.has(digest)) this.#usedMs.set(digest, nowMs)
    const held = new Set(digests)
    // Recent ones may have been held since the request was sent.
    for (const [digest, ms] of this.#usedMs) if (!held.has(digest) && ms < nowMs - minuteMs) this.#usedMs.delete(digest)
    return digests.sort()
  }

  readonly #refused = (error: unknown): false => {
    if (!(error instanceof RegistryError) || !refusals.has(error.fault)) throw error
    this.#refusedMs = this.#now()
    this.#log.warn('the registry refuses deletions: content of deleted images stays there', { problem: error.problem })
    return false
  }

  /** Holding and deleting an image run one after the other. */
  #exclusively<T>(digest: string, work: () => Promise<T>): Promise<T> {
    return exclusively(`${this.#blobs.repository.name}@${digest}`, work)
  }
}

/** A repository without content does not exist. */
function ifNotFound(error: unknown): readonly [] {
  if (error instanceof RegistryError && error.fault === 'notFound') return []
  throw error
}
