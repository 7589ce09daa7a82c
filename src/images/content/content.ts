// What a place for content is, whatever it is made of, and what can be wrong with content.
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

interface Page {
  readonly items: readonly Listed[]
  /** For the next page; undefined at the end. */
  readonly after: string | undefined
}

interface Waiting {
  readonly signal?: AbortSignal | undefined
}

/** What restoring and reading need: a store, or anything else that has content by digest. */
export interface ContentSource {
  /** Returns the whole content, checked. Throws when it has more than `maxBytes`. */
  read(digest: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer>
}

export interface PutOptions extends Waiting {
  readonly maxBytes?: number
  /** Of bytes at hand, when somebody has just made sure of it. */
  readonly digest?: string
  /** Lasting is left to this: whoever has it ends it before anything names the content. */
  readonly syncing?: Syncing
}

/** A folder, or a registry: the contract is test/contract/content.ts. */
export interface ContentStore extends ContentSource {
  /** On this host; what is about the content may lie beside it. */
  readonly folder: string
  /** Other servers have parts of it, or delete from it: that a record was seen to name content is no promise. */
  readonly isShared?: boolean
  /** The bytes may be overwritten by whoever has them once this is over. */
  put(content: Content, options?: PutOptions): Promise<Stored>
  /** Content from elsewhere: kept only when it is exactly what it was said to be. */
  putExpected(expected: Stored, content: Content, options?: PutOptions): Promise<void>
  has(digest: string): Promise<boolean>
  /** Undefined: it is nowhere. Throws where nobody can say that now. */
  size(digest: string): Promise<number | undefined>
  /** Throws as reading would where one of them is not to be had, without moving any. Where all are in one place: absent. */
  requireAll?(digests: Iterable<string>): Promise<void>
  /** Streams it, and throws at the end when it is not what it should be. A part of it cannot be checked, and is not. */
  open(digest: string, part?: { readonly start: number; readonly end: number }): AsyncGenerator<Buffer>
  /**
   * Whether it is there; if so, the collector takes it for new. Called for content about to be referred to, by somebody who
   * puts it anew where it is not: what only a server has that is away counts as not there.
   */
  touch(digest: string): Promise<boolean>
  /**
   * Of an image whose manifest is put and whose content was touched, before a record names it: binds all of it together,
   * where not only our collector cleans up.
   */
  hold(digest: string, manifest: Manifest, signal?: AbortSignal): Promise<void>
  /** Deletes it unless it was put, touched or held since `beforeMs`, also in this very moment. */
  deleteUnused(digest: string, beforeMs: number): Promise<boolean>
  /** What `deleteUnused` can free, in order of digest: all content, or only manifests where the rest goes with them. */
  list(page: { readonly after?: string | undefined; readonly limit: number }): Promise<Page>
}

export class NoContentError extends Error {
  override readonly name: string = 'NoContentError'
  constructor(digest: string, where = 'in this store: fetch the image again') {
    super(`No content ${digest} ${where}`)
  }
}

/** It is not here, and somebody who may have it does not answer now. Whoever can get it elsewhere need not wait. */
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

/** Where the content is cannot be reached, or does not let us in. What was asked for may be asked for again. */
export class ContentUnavailableError extends Error {
  override readonly name = 'ContentUnavailableError'
}

/** More than the place of the content can ever take. */
export class ContentTooLargeError extends Error {
  override readonly name = 'ContentTooLargeError'
}

const sliceBytes = 2 ** 20

/** In slices, with turns for others between them. (Web Crypto hashes in another thread, for twice the work.) */
export async function digestOfBuffer(content: Uint8Array): Promise<string> {
  const hasher = createHash('sha256')
  for (let at = 0; at < content.length; at += sliceBytes) {
    if (at > 0) await setImmediate()
    hasher.update(content.subarray(at, at + sliceBytes))
  }
  return `sha256:${hasher.digest('hex')}`
}
