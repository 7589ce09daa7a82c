// The first bytes of a guest's SSH server. A VM that was deployed a moment ago runs before it listens, and what forwards
// to it accepts connections earlier still: only the server's own greeting says that it is there.
import type { Duplex } from 'node:stream'
import { ApiError } from '../../../api/errors.ts'
import { wait } from '../../../client/retry.ts'
import { ConnectionError } from '../../../client/transport.ts'
import type { Dial } from './reach.ts'

export interface Patience {
  readonly vm: string
  readonly signal: AbortSignal
  /** For all tries together, and for one of them. */
  readonly totalMs?: number
  readonly tryMs?: number
  readonly pauseMs?: number
}

/** A stream from which the greeting can still be read. */
export async function dialUntilGreeted(dial: Dial, patience: Patience): Promise<Duplex> {
  const { vm, signal, totalMs = 30_000, tryMs = 5_000, pauseMs = 250 } = patience
  const endMs = performance.now() + totalMs
  let problem = 'it did not answer'
  while (performance.now() < endMs) {
    try {
      const stream = await greeted(await dial(signal), Math.min(tryMs, endMs - performance.now()), signal)
      if (stream) return stream
    } catch (error) {
      signal.throwIfAborted()
      if (!isPassing(error)) throw error
      problem = (error as Error).message
    }
    await wait(pauseMs, signal)
  }
  throw new ApiError('Timeout', `no SSH server spoke in vm "${vm}" within ${totalMs / 1_000} s: ${problem}`, {
    hint: `"svc3 vm logs ${vm}" shows whether it has started`,
  })
}

/** Undefined when it ends, or says nothing in time. */
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
  const spoken = await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', none)
  stream.off('data', some).off('end', none).off('close', none).off('error', none)
  if (!spoken) stream.destroy()
  return spoken
}

/** The guest is not there yet, or a connection broke; everything else stays as it is however long one waits. */
const isPassing = (error: unknown): boolean =>
  error instanceof ConnectionError
    ? error.fault === 'lost' || error.fault === 'timeout'
    : error instanceof ApiError && (error.code === 503 || error.code === 429)
