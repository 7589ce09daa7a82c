// Delivers an image to the server: uploads the content that it lacks, several pieces at a time, each until the server has
// accepted it, and then asks it to finish. An interrupted delivery continues with the missing content.
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import type { Stored } from '../../images/content/content.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type RetryPolicy, retry, retryPolicies, type wait } from '../../platform/retry.ts'
import { isRetriable } from '../link/connection.ts'

export interface Receiver {
  missing(digests: readonly string[], signal: AbortSignal): Promise<readonly string[]>
  put(digest: string, content: Buffer, signal: AbortSignal): Promise<void>
  /** Returns the digests that are still missing; none if the image is complete. */
  finish(content: string, signal: AbortSignal): Promise<readonly string[]>
}

interface DeliverOptions {
  readonly receiver: Receiver
  readonly read: (digest: string, bytes: number, signal: AbortSignal) => Promise<Buffer>
  readonly signal: AbortSignal
  progress(share: number, bytes: number): void
  /** Called with the reason while the server asks to try later. */
  onWait?(reason: string): void
  readonly retry?: RetryPolicy
  readonly pause: typeof wait
  /** Tests only. */
  readonly maxRefusals?: number
}

const maxUploads = 4
const digestsPerCall = 5_000
/** How often to send again what a server loses. */
const maxRounds = 5
/** About an hour. A server that cannot be reached is retried without limit. */
const defaultMaxRefusals = 240
/** Refusals that are not reported, because most pass within seconds. */
const quietRefusals = 3

export async function deliver(content: string, parts: readonly Stored[], options: DeliverOptions): Promise<void> {
  const { receiver, read, signal, progress } = options
  const sizes = new Map(parts.map(({ digest, bytes }) => [digest, bytes]))
  const persist = <T>(work: () => Promise<T>): Promise<T> => untilAccepted(work, options)
  let wanted = [...sizes.keys()]
  for (let round = 1; round <= maxRounds; round++) {
    const missing: string[] = []
    for (let at = 0; at < wanted.length; at += digestsPerCall) {
      const page = wanted.slice(at, at + digestsPerCall)
      missing.push(...(await persist(() => receiver.missing(page, signal))))
    }
    const of = missing.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0)
    let sent = 0
    await forEachParallel(missing, maxUploads, async (digest) => {
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
    wanted = [...left]
  }
  throw new Error('the server cannot store the image; check its free disk space and try again')
}

function untilAccepted<T>(work: () => Promise<T>, options: DeliverOptions): Promise<T> {
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
      if (!(error instanceof ConnectionError) && refusals > quietRefusals) options.onWait?.(reasonOf(error))
    },
    wait: pause,
  })
}

/** Content that was damaged in transit or in the server's store is refused with 400, and repaired by sending it again. */
const mayPass = (error: unknown): boolean => isRetriable(error) || (error instanceof ApiError && error.code === 400)
