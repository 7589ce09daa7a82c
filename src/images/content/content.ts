// The interface of stores that keep content by digest, and the errors that they throw.
import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Manifest } from '../format/format.ts'
import type { Syncing } from './syncing.ts'

export type Content = Uint8Array | AsyncIterable<Uint8Array>

export interface Stored {
  readonly digest: string
  readonly bytes: number
}

export interface Listed extends Stored {
  readonly modifiedMs: number
}

export interface ContentPage {
  readonly items: readonly Listed[]
  /** Where the next page begins; undefined at the end. */
  readonly after: string | undefined
}

/** The bytes from `start` up to, but not including, `end`. */
export interface Part {
  readonly start: number
  readonly end: number
}

export interface ContentSource {
  /** Returns the whole content, verified. Throws if it has more than `maxBytes`. */
  read(digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer>
}

export interface PutOptions {
  readonly signal?: AbortSignal | undefined
  readonly maxBytes?: number
  /** The digest of a buffer, if the caller has just computed it. */
  readonly digest?: string
  /** Syncs the files in place of `put`. The caller MUST await its `end` before anything refers to the content. */
  readonly syncing?: Syncing
}

/** Implementations pass the contract suite test/contract/content.ts. */
export interface ContentStore extends ContentSource {
  /** A folder of this host, beside which callers may keep related files. */
  readonly folder: string
  /** Other servers have or delete some of the content, so a record that names content does not prove that it exists. */
  readonly isShared?: boolean
  /** The caller may reuse the bytes once this resolves. */
  put(content: Content, options?: PutOptions): Promise<Stored>
  /** Throws unless the content matches `expected`. */
  putExpected(expected: Stored, content: Content, options?: PutOptions): Promise<void>
  has(digest: string): Promise<boolean>
  /** Undefined if the content does not exist. Throws if that is unknown because a server does not respond. */
  size(digest: string): Promise<number | undefined>
  /** Throws if some of the content cannot be read. Stores that have everything in one place lack this method. */
  requireAll?(digests: Iterable<string>): Promise<void>
  /** Streams the content and throws at the end if it does not match its digest. A part is not verified. */
  open(digest: string, part?: Part): AsyncGenerator<Buffer>
  /**
   * Returns whether the content exists; if so, the collector counts it as new. Callers touch content before they refer to it,
   * and put it again if it is missing. Content that only unreachable servers have counts as missing.
   */
  touch(digest: string): Promise<boolean>
  /** Protects an image's parts where other programs clean up, as in a registry. Called before a record names it. */
  hold(digest: string, manifest: Manifest, signal?: AbortSignal): Promise<void>
  /** Deletes the content unless it was put, touched or held since `beforeMs`, even concurrently. */
  deleteUnused(digest: string, beforeMs: number): Promise<boolean>
  /** Lists what `deleteUnused` can delete, by digest: all content, or only manifests if they keep the rest alive. */
  list(page: { readonly after?: string | undefined; readonly limit: number }): Promise<ContentPage>
}

export class NoContentError extends Error {
  override readonly name: string = 'NoContentError'
  constructor(digest: string, where = 'in this store: fetch the image again') {
    super(`No content ${digest} ${where}`)
  }
}

/** The content is not here, and a server that may have it does not respond. */
export class ContentAwayError extends NoContentError {
  override readonly name = 'ContentAwayError'
  readonly where: string
  constructor(digest: string, where: string) {
    super(digest, where)
    this.where = where
  }
}

export class WrongContentError extends Error {
  override readonly name = 'WrongContentError'
  constructor(digest: string | undefined, problem: string) {
    super(`${digest === undefined ? 'New content' : `Content ${digest}`} ${problem}: fetch it again`)
  }
}

/** The store cannot be reached, or refuses access. A retry may succeed. */
export class ContentUnavailableError extends Error {
  override readonly name = 'ContentUnavailableError'
}

/** The store will never accept content of this size. */
export class ContentTooLargeError extends Error {
  override readonly name = 'ContentTooLargeError'
}

const sliceBytes = 2 ** 20

/** Lets the event loop run between slices. Web Crypto would hash in another thread, at twice the CPU time. */
export async function digestOfBuffer(content: Uint8Array): Promise<string> {
  const hasher = createHash('sha256')
  for (let at = 0; at < content.length; at += sliceBytes) {
    if (at > 0) await setImmediate()
    hasher.update(content.subarray(at, at + sliceBytes))
  }
  return `sha256:${hasher.digest('hex')}`
}
