// Content of images from peers, a registry or the server, through this node's store. An interrupted fetch continues with the
// content that it lacks, and content counts only once its digest was checked.
import { ApiError } from '../../api/errors.ts'
import {
  type ContentSource,
  type ContentStore,
  digestOfBuffer,
  NoContentError,
  WrongContentError,
} from '../../images/content/content.ts'
import type { Syncing } from '../../images/content/syncing.ts'
import { RegistryError } from '../../oci/artifact/errors.ts'
import { reasonOf } from '../../platform/reason.ts'
import { orAborted, type RetryPolicy, retry, retryPolicies } from '../../platform/retry.ts'
import { isRetriable } from '../link/connection.ts'

/** Opens content on the server, without checking it against its digest. */
export type OpenBlob = (digest: string, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/** Reads checked content from a peer; undefined if no peer has it. */
export type NearContent = (digest: string, signal: AbortSignal) => Promise<Buffer | undefined>

/** Content that this node is fetching. Other nodes that the server sends here for it wait until it has arrived. */
export class ContentFetches {
  readonly #running = new Map<string, Promise<unknown>>()

  add(digest: string, fetching: Promise<unknown>): void {
    const ended = fetching
      .catch(() => undefined)
      .finally(() => {
        if (this.#running.get(digest) === ended) this.#running.delete(digest)
      })
    this.#running.set(digest, ended)
  }

  /** Waits at most `maxMs` for content. False if it is not being fetched. */
  async wait(digest: string, maxMs: number): Promise<boolean> {
    const running = this.#running.get(digest)
    if (!running) return false
    await orAborted(running, AbortSignal.timeout(maxMs)).catch(() => undefined)
    return true
  }
}

export interface SourceOptions {
  readonly store: ContentStore
  /** Asked before the server or a registry. */
  readonly near?: NearContent | undefined
  readonly fetches?: ContentFetches | undefined
  readonly open: OpenBlob
  /** Reads complete, checked content, such as from a registry, instead of `open`. */
  readonly read?: ContentSource['read'] | undefined
  readonly fetched?: ((from: 'peer' | 'server' | 'registry', bytes: number) => void) | undefined
  readonly syncing?: Syncing | undefined
  /** Do not store the content, for lack of space. */
  readonly isPassedOn?: boolean
  /** Called with the reason while the server asks to try later. With it, such refusals are retried for most of an hour. */
  readonly onWait?: ((reason: string) => void) | undefined
  /** Tests only, like the next two. */
  readonly retry?: RetryPolicy | undefined
  readonly maxRefusals?: number
  readonly silenceMs?: number
}

const defaultMaxRefusals = 400
/** Failures that are not reported, because most pass within seconds. */
const quietFailures = 1
const defaultSilenceMs = 30_000
const never = new AbortController().signal

class Silence extends Error {
  override readonly name = 'Silence'
}

export function fetchedContent(options: SourceOptions): ContentSource {
  const {
    store,
    open,
    isPassedOn = false,
    retry: policy = retryPolicies.transfer,
    silenceMs = defaultSilenceMs,
  } = options
  const { maxRefusals = defaultMaxRefusals } = options
  const syncing = options.syncing && { syncing: options.syncing }

  const fetchOnce = async (digest: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> => {
    const near = await options.near?.(digest, signal)
    const checked = near ?? (await options.read?.(digest, maxBytes, signal))
    const content = checked ?? (await fromServer(digest, maxBytes, signal))
    if (content.length > maxBytes) throw tooLong(digest, maxBytes)
    options.fetched?.(near ? 'peer' : checked ? 'registry' : 'server', content.length)
    if (!isPassedOn) {
      const known = checked && { digest }
      await store.putExpected({ digest, bytes: content.length }, content, { signal, ...known, ...syncing })
    } else if (!checked && (await digestOfBuffer(content)) !== digest)
      throw new WrongContentError(digest, 'is something else')
    return content
  }

  const fromServer = async (digest: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> => {
    const silence = new AbortController()
    const silent = new Silence(`the server sent nothing for ${silenceMs / 1_000} s`)
    const timer = setTimeout(() => silence.abort(silent), silenceMs)
    const pieces: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const piece of await open(digest, AbortSignal.any([signal, silence.signal]))) {
        timer.refresh()
        bytes += piece.length
        if (bytes > maxBytes) throw tooLong(digest, maxBytes)
        pieces.push(piece)
      }
    } finally {
      clearTimeout(timer)
    }
    return Buffer.concat(pieces, bytes)
  }

  const fetch = (digest: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> => {
    let refusals = 0
    const work = async (progressed: () => void): Promise<Buffer> => {
      try {
        return await fetchOnce(digest, maxBytes, signal)
      } catch (error) {
        if (error instanceof ApiError && error.code === 404)
          throw new Error(`content is lost (no server has ${digest}); delete the image and upload it again`, {
            cause: error,
          })
        if (options.onWait && error instanceof ApiError && error.code === 503 && ++refusals <= maxRefusals) progressed()
        throw error
      }
    }
    return retry(work, {
      policy,
      signal,
      isRetriable: mayPass,
      onWait: ({ error, attempt }) => {
        if (Math.max(attempt, refusals) > quietFailures) options.onWait?.(problemOf(error))
      },
    })
  }

  return {
    async read(digest, maxBytes, signal = never) {
      const stored = await store.read(digest, maxBytes, signal).catch(ifUnusable)
      if (stored) return stored
      const fetching = fetch(digest, maxBytes, signal)
      options.fetches?.add(digest, fetching)
      return fetching
    },
  }
}

const tooLong = (digest: string, maxBytes: number): WrongContentError =>
  new WrongContentError(digest, `has more than the ${maxBytes} bytes declared`)

const problemOf = (error: unknown): string =>
  error instanceof WrongContentError ? `the server sent something else: ${error.message}` : reasonOf(error)

/** A failure of a registry is final: it was retried for minutes already. */
const mayPass = (error: unknown): boolean =>
  (isRetriable(error) && !(error instanceof RegistryError)) ||
  error instanceof WrongContentError ||
  error instanceof Silence

function ifUnusable(error: unknown): undefined {
  if (!(error instanceof NoContentError || error instanceof WrongContentError)) throw error
}

/** The node's store, and a source that fetches what the store lacks from the server. */
export interface NodeContent {
  readonly store: ContentStore
  readonly source: ContentSource
}
