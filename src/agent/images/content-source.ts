// Content of images from other nodes or the server, through the node's own store: what has come stays, so that a fetch that
// was cut off goes on where it was, and nothing counts before it is what its digest says.
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
import { backOff, type RetryPolicy, wait } from '../../rules/retry.ts'
import { isRetriable } from '../link/connection.ts'
import type { Coming } from './coming.ts'

/** Content as it comes from the server, unchecked. */
export type OpenBlob = (digest: string, signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/** Content of somebody nearer than the server, checked; undefined where the server has to be asked. */
export type NearContent = (digest: string, signal: AbortSignal) => Promise<Buffer | undefined>

export interface SourceOptions {
  readonly store: ContentStore
  /** Asked first. */
  readonly near?: NearContent | undefined
  /** Told of what is being fetched. */
  readonly coming?: Coming | undefined
  readonly open: OpenBlob
  /** In place of `open`: whole, and checked. */
  readonly read?: ContentSource['read'] | undefined
  /** So much has come, and from where. */
  readonly fetched?: ((from: 'peer' | 'server' | 'registry', bytes: number) => void) | undefined
  /** Lasting is left to this. */
  readonly syncing?: Syncing | undefined
  /** What comes is not put into the store: there is no room for it. */
  readonly isPassedOn?: boolean
  /** The server says "not now": why. Where this is given, it is asked again for long; left out, as for other failures. */
  readonly waits?: ((reason: string) => void) | undefined
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
  readonly maxRefusals?: number
  readonly silenceMs?: number
}

/** Half a minute and more: a server that is restarted is waited for. */
const patience: RetryPolicy = { attempts: 8, firstDelayMs: 500, maxDelayMs: 10_000, maxRetryAfterMs: 0 }
/** A server that says "not now" is asked again for most of an hour. */
const defaultMostRefusals = 400
/** What passes within seconds is not worth a word. */
const quietRefusals = 1
const defaultSilenceMs = 30_000
const never = new AbortController().signal

class Silence extends Error {
  override readonly name = 'Silence'
}

export function fetchedContent(options: SourceOptions): ContentSource {
  const { store, open, isPassedOn = false, retry = patience, silenceMs = defaultSilenceMs } = options
  const { maxRefusals = defaultMostRefusals } = options
  const lasting = options.syncing && { syncing: options.syncing }

  /** A chunk fits into memory, and the largest manifest does. */
  const fetchOnce = async (digest: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> => {
    const checked = async (whole: Buffer): Promise<Buffer> => {
      if (!isPassedOn) await store.putExpected({ digest, bytes: whole.length }, whole, { signal, digest, ...lasting })
      return whole
    }
    const nearer = await options.near?.(digest, signal)
    if (nearer && nearer.length > maxBytes) throw tooLong(digest, maxBytes)
    const fetched = (from: 'peer' | 'registry', content: Buffer): Promise<Buffer> => {
      options.fetched?.(from, content.length)
      return checked(content)
    }
    if (nearer) return fetched('peer', nearer)
    if (options.read) return fetched('registry', await options.read(digest, maxBytes, signal))
    const silence = new AbortController()
    const heard = new Silence(`the server sent nothing for ${silenceMs / 1_000} s`)
    const timer = setTimeout(() => silence.abort(heard), silenceMs)
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
    options.fetched?.('server', bytes)
    const content = Buffer.concat(pieces, bytes)
    if (!isPassedOn) await store.putExpected({ digest, bytes }, content, { signal, ...lasting })
    else if ((await digestOfBuffer(content)) !== digest) throw new WrongContentError(digest, 'is something else')
    return content
  }

  const fetch = async (digest: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> => {
    let refusals = 0
    for (let attempt = 1; ; attempt++) {
      try {
        return await fetchOnce(digest, maxBytes, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ApiError && error.code === 404)
          throw new Error(`content is lost (no server has ${digest}); delete the image and upload it again`, {
            cause: error,
          })
        if (options.waits && error instanceof ApiError && error.code === 503 && ++refusals <= maxRefusals) {
          if (refusals > quietRefusals) options.waits(error.message)
          const askedMs = Math.min((error.options.retryAfterSeconds ?? 0) * 1_000, retry.maxDelayMs)
          await wait(Math.max(askedMs, backOff(refusals, retry, Math.random)), signal)
          attempt = 0
          continue
        }
        if (attempt >= retry.attempts || !mayPass(error)) throw error
        if (attempt > quietRefusals) options.waits?.(problemOf(error))
        await wait(backOff(attempt, retry, Math.random), signal)
      }
    }
  }

  return {
    async read(digest, maxBytes, signal = never) {
      const kept = await store.read(digest, maxBytes, signal).catch(ifUnusable)
      if (kept) return kept
      const fetching = fetch(digest, maxBytes, signal)
      options.coming?.add(digest, fetching)
      return fetching
    },
  }
}

const tooLong = (digest: string, maxBytes: number): WrongContentError =>
  new WrongContentError(digest, `has more than the ${maxBytes} bytes declared`)

const problemOf = (error: unknown): string =>
  error instanceof WrongContentError ? `the server sent something else: ${error.message}` : reasonOf(error)

/** A registry has been waited for already. */
const mayPass = (error: unknown): boolean =>
  (isRetriable(error) && !(error instanceof RegistryError)) ||
  error instanceof WrongContentError ||
  error instanceof Silence

/** What is missing or damaged here is fetched. */
function ifUnusable(error: unknown): undefined {
  if (!(error instanceof NoContentError || error instanceof WrongContentError)) throw error
}

/** The node's own store, and all that it lacks from the server. */
export interface NodeContent {
  readonly store: ContentStore
  readonly source: ContentSource
}
