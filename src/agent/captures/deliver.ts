// Brings an image to the server: what it lacks, several pieces at once, each again until it was taken; then the word that
// all of it is there. What has come stays, so whoever begins again sends the rest.
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { Stored } from '../../images/content/content.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { eachAtOnce } from '../../platform/parallel.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type RetryPolicy, retry, retryPolicies, type wait } from '../../platform/retry.ts'
import { isRetriable } from '../link/connection.ts'

/** What is said to the server; each may throw what `isRetriable` knows. */
export interface Receiver {
  missing(digests: readonly string[], signal: AbortSignal): Promise<readonly string[]>
  put(digest: string, content: Buffer, signal: AbortSignal): Promise<void>
  /** Returns what is missing; nothing: it is done. */
  finish(content: string, signal: AbortSignal): Promise<readonly string[]>
}

interface DeliverOptions {
  readonly receiver: Receiver
  readonly read: (digest: string, bytes: number, signal: AbortSignal) => Promise<Buffer>
  readonly signal: AbortSignal
  progress(share: number, bytes: number): void
  /** The server is there and says "not now": why. */
  waits?(reason: string): void
  /** Tests only. */
  readonly retry?: RetryPolicy
  readonly maxRefusals?: number
  /** How it is waited between two tries; may end early, when the server is known to be back. */
  readonly pause?: typeof wait
}

const putsAtOnce = 4
const askedAtOnce = 5_000
/** A server that loses what it has taken is not to be fed for ever. */
const maxRounds = 5
/** About an hour. A server that cannot be reached is retried without limit. */
const defaultMaxRefusals = 240

/** What passes within a second or two is not worth a word. */
const quietRefusals = 3

export async function deliver(content: string, parts: readonly Stored[], options: DeliverOptions): Promise<void> {
  const { receiver, read, signal, progress } = options
  const sizes = new Map(parts.map(({ digest, bytes }) => [digest, bytes]))
  const persist = <T>(work: () => Promise<T>): Promise<T> => persistently(work, options)
  let asked = [...sizes.keys()]
  for (let round = 1; round <= maxRounds; round++) {
    const missing: string[] = []
    for (let at = 0; at < asked.length; at += askedAtOnce) {
      const page = asked.slice(at, at + askedAtOnce)
      missing.push(...(await persist(() => receiver.missing(page, signal))))
    }
    const of = missing.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0)
    let sent = 0
    await eachAtOnce(missing, putsAtOnce, async (digest) => {
      signal.throwIfAborted()
      const bytes = sizes.get(digest)
      if (bytes === undefined) throw new Error(`the server asks for ${digest}, which is not part of the image`)
      await persist(async () => receiver.put(digest, await read(digest, bytes, signal), signal))
      failpoint('captures.deliver.put')
      sent += bytes
      progress(of === 0 ? 1 : sent / of, sent)
    })
    failpoint('captures.deliver.finish')
    const left = await persist(() => receiver.finish(content, signal))
    if (left.length === 0) return
    asked = [...left]
  }
  throw new Error('the server cannot store the image; check its free disk space and try again')
}

function persistently<T>(work: () => Promise<T>, options: DeliverOptions): Promise<T> {
  const { signal, retry: policy = retryPolicies.background, maxRefusals = defaultMaxRefusals, pause } = options
  let refusals = 0
  const attempt = async (): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ConnectionError || ++refusals < maxRefusals || !mayPass(error)) throw error
      throw new Error(`the server refused it: ${reasonOf(error)}`, { cause: error })
    }
  }
  return retry(attempt, {
    policy,
    signal,
    isRetriable: mayPass,
    onWait: ({ error }) => {
      if (!(error instanceof ConnectionError) && refusals > quietRefusals) options.waits?.(reasonOf(error))
    },
    ...(pause && { wait: pause }),
  })
}

/** Content that was damaged in transit or in the server's store is refused with 400, and repaired by sending it again. */
const mayPass = (error: unknown): boolean => isRetriable(error) || (error instanceof ApiError && error.code === 400)
