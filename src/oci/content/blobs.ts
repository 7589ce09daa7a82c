// The blobs of one repository, with failures as errors of content, and whether the registry is available.
import {
  ContentTooLargeError,
  ContentUnavailableError,
  NoContentError,
  type Part,
  type Stored,
  WrongContentError,
} from '../../images/content/content.ts'
import { hexOf } from '../../images/content/files.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Log } from '../../platform/log.ts'
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import type { Descriptor } from '../artifact/oci-manifest.ts'
import { type BlobContent, once } from '../artifact/target.ts'
import type { Repository } from '../registry/registry.ts'

const mediaType = 'application/octet-stream'
/** Faults that every request would have. */
const unavailable: ReadonlySet<RegistryFault> = new Set([
  'unavailable',
  'unknownHost',
  'rateLimited',
  'unauthorized',
  'untrusted',
  'plain',
])

export class RegistryBlobs {
  readonly repository: Repository
  readonly #log: Log
  #problem: string | undefined

  constructor(repository: Repository, log: Log) {
    this.repository = repository
    this.#log = log
  }

  /** Why the registry was unavailable at the last request; undefined if it was available. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** `digest`: the content that a 404 or an invalid response is about. */
  async request<T>(digest: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.#answered()
      return result
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      if (unavailable.has(error.fault)) {
        if (this.#problem === undefined) this.#log.warn('the image registry is unavailable', { problem: error.problem })
        this.#problem = error.problem
      } else this.#answered()
      throw contentError(error, digest)
    }
  }

  #answered(): void {
    if (this.#problem !== undefined) this.#log.info('the image registry answers again')
    this.#problem = undefined
  }

  async size(digest: string, signal?: AbortSignal): Promise<number | undefined> {
    hexOf(digest)
    return this.request(digest, () => this.repository.size(digest, signal))
  }

  /** Throws if the blob does not exist, or has more than `maxBytes`. */
  async describe(digest: string, maxBytes = Infinity): Promise<Descriptor> {
    const size = await this.size(digest)
    if (size === undefined) throw new NoContentError(digest)
    if (size > maxBytes) throw new WrongContentError(digest, `has ${size} bytes, more than the ${maxBytes} declared`)
    return { mediaType, digest, size }
  }

  async put({ digest, bytes }: Stored, content: BlobContent, signal: AbortSignal | undefined): Promise<void> {
    failpoint('images.put.write')
    await this.request(digest, () => this.repository.put({ mediaType, digest, size: bytes }, content, { signal }))
    failpoint('images.put.rename')
  }

  putBytes(stored: Stored, bytes: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return this.put(stored, { open: (offset) => once(buffer.subarray(offset)) }, signal)
  }

  async *open(digest: string, part: Part | undefined): AsyncGenerator<Buffer> {
    const blob = await this.describe(digest)
    const { start, end } = part ?? { start: 0, end: blob.size }
    let left = Math.min(end, blob.size) - start
    if (left <= 0) return
    try {
      for await (const piece of this.repository.open(blob, { offset: start, isUnchecked: part !== undefined })) {
        yield piece.subarray(0, left)
        left -= Math.min(left, piece.length)
        // A whole blob is read to its end, where its digest is checked.
        if (left === 0 && part) return
      }
    } catch (error) {
      throw error instanceof RegistryError ? contentError(error, digest) : error
    }
  }
}

function contentError(error: RegistryError, digest: string | undefined): Error {
  if (error.fault === 'notFound' && digest !== undefined) return new NoContentError(digest)
  if (error.fault === 'invalid' && digest !== undefined) return new WrongContentError(digest, error.problem)
  const Kind = error.fault === 'tooLarge' ? ContentTooLargeError : ContentUnavailableError
  return new Kind(`Image registry: ${error.problem}`, { cause: error })
}
