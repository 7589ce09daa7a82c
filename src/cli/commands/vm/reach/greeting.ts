// Waits for the greeting of the SSH server in a guest. Forwarders accept connections before the guest listens, so only the
// greeting shows that the server is up.
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../../api/errors.ts'
import { ConnectionError } from '../../../../client/transport.ts'
import { isTransient, wait } from '../../../../platform/retry.ts'
import type { reachProblem } from '../../../../rules/guest-reach.ts'
import type { Context } from '../../../command.ts'
import { startProgress } from '../../../output/progress.ts'
import type { Dial } from './reach.ts'

interface GreetingOptions {
  readonly vm: string
  readonly signal: AbortSignal
  readonly sameTargetFlags?: string
  /** The limit of all attempts, which must cover a boot of macOS; of one attempt; and the interval between two starts. */
  readonly totalMs?: number
  readonly tryMs?: number
  readonly pauseMs?: number
  /** Called before each further attempt with the last problem. */
  readonly onRetry?: (problem: string) => void
  /** Returns why the service cannot reach the guest, if it knows. Called from time to time. */
  readonly why?: () => Promise<Cause | undefined>
}

type Cause = NonNullable<ReturnType<typeof reachProblem>>

/** How many attempts come between two questions to the service. */
const lookUpEvery = 8

/** Waits for the greeting. After the first attempt, shows why none has come. */
export async function awaitGreeting(
  context: Context,
  dial: Dial,
  awaited: Pick<GreetingOptions, 'vm' | 'sameTargetFlags' | 'why'>,
): Promise<Duplex> {
  const progress = startProgress(context, `VM ${awaited.vm}`)
  const onRetry = (problem: string): void => progress.show({ text: `waiting for SSH: ${problem}` })
  try {
    return await dialUntilGreeted(dial, { ...awaited, signal: context.signal, onRetry })
  } finally {
    progress.end()
  }
}

/**
 * Returns a stream from which the greeting can still be read. Attempts overlap, because one that started before the guest
 * listened may hang for seconds while a later one succeeds. The first one with a greeting wins, and the others end.
 */
export async function dialUntilGreeted(dial: Dial, options: GreetingOptions): Promise<Duplex> {
  const { vm, signal, sameTargetFlags = '', totalMs = 90_000, tryMs = 5_000, pauseMs = 700, onRetry, why } = options
  const unfinished = new Set<AbortController>()
  const winner = Promise.withResolvers<Duplex>()
  const pausing = new AbortController()
  let problem: string | undefined
  let known: Cause | undefined
  const lookUp = async (): Promise<void> => {
    known = await why?.().catch(() => known)
  }
  const logs = `Run svc3 vm logs ${vm}${sameTargetFlags} to see whether it has booted`
  const cause = (): Cause => (problem === undefined && known ? known : { what: problem ?? 'no answer', next: logs })

  const attempt = async (): Promise<void> => {
    const controller = new AbortController()
    unfinished.add(controller)
    const ends = AbortSignal.any([signal, controller.signal])
    try {
      const stream = await greeted(await dial(ends), tryMs, ends)
      if (!stream) return
      unfinished.delete(controller)
      winner.resolve(stream)
    } catch (error) {
      if (ends.aborted) return
      if (!isTransient(error) || isRefused(error)) winner.reject(error)
      problem = (error as Error).message
    }
  }
  const keepTrying = async (): Promise<void> => {
    for (let count = 0; count * pauseMs < totalMs; count++) {
      void attempt()
      if (count % lookUpEvery === 1) void lookUp()
      await wait(Math.min(pauseMs, totalMs - count * pauseMs), AbortSignal.any([signal, pausing.signal]))
      onRetry?.(cause().what)
    }
    const { what, next } = cause()
    throw new ApiError('Timeout', `VM ${vm} did not answer on SSH within ${totalMs / 1_000} s: ${what}`, { hint: next })
  }
  keepTrying().catch(winner.reject)
  try {
    return await winner.promise
  } finally {
    pausing.abort()
    for (const controller of unfinished) controller.abort()
  }
}

/** Returns undefined if the stream ends or stays silent. */
async function greeted(stream: Duplex, timeoutMs: number, signal: AbortSignal): Promise<Duplex | undefined> {
  const { promise, resolve } = Promise.withResolvers<Duplex | undefined>()
  const none = (): void => resolve(undefined)
  const some = (chunk: Uint8Array): void => {
    stream.pause()
    stream.unshift(chunk)
    resolve(stream)
  }
  const timer = setTimeout(none, timeoutMs)
  signal.addEventListener('abort', none, { once: true })
  stream.once('data', some).once('end', none).once('close', none).once('error', none)
  const result = await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', none)
  stream.off('data', some).off('end', none).off('close', none).off('error', none)
  if (!result) stream.destroy()
  return result
}

/** A refused connection is an error of the service, not of the guest. */
const isRefused = (error: unknown): boolean => error instanceof ConnectionError && error.fault === 'refused'
