// An upload in chunks that survives lost connections: it continues from the offset that the server has. The steps are
// passed in, so it depends on neither the page nor the network.
import { retry, retryPolicies } from '../../src/platform/retry.ts'

interface UploadSteps<T> {
  /** Starts an upload, or finds the one started for the same file. Returns how many bytes the server has. */
  readonly begin: (signal: AbortSignal) => Promise<number>
  /**
   * Sends a chunk and returns how many bytes the server has. Throws if the connection is lost or the server refuses.
   */
  readonly send: (from: number, to: number, signal: AbortSignal) => Promise<number>
  readonly finish: (signal: AbortSignal) => Promise<T>
  readonly isRetriable: (error: unknown) => boolean
  /** Replaced in tests. */
  readonly wait?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly nowMs: () => number
}

export interface UploadProgress {
  readonly phase: 'sending' | 'waiting' | 'finishing'
  readonly bytes: number
  /** Bytes that were uploaded before this page was opened. */
  readonly resumedAt: number
  readonly bytesPerSecond: number | undefined
}

export const pieceBytes = 8 * 1_048_576
const policy = { ...retryPolicies.background, firstDelayMs: 500, maxDelayMs: 8_000 }

export function upload<T>(
  size: number,
  { begin, send, finish, isRetriable, wait, nowMs }: UploadSteps<T>,
  onProgress: (progress: UploadProgress) => void,
  signal: AbortSignal,
): Promise<T> {
  let resumedAt: number | undefined
  let bytes = 0
  const report = (phase: UploadProgress['phase'], bytesPerSecond?: number): void =>
    onProgress({ phase, bytes, resumedAt: resumedAt ?? 0, bytesPerSecond })
  const attempt = async (progressed: () => void): Promise<T> => {
    bytes = await begin(signal)
    resumedAt ??= bytes
    const [startedAt, startedMs] = [bytes, nowMs()]
    report('sending')
    while (bytes < size) {
      bytes = await send(bytes, Math.min(size, bytes + pieceBytes), signal)
      progressed()
      const seconds = (nowMs() - startedMs) / 1_000
      report('sending', seconds > 0.5 ? (bytes - startedAt) / seconds : undefined)
    }
    report('finishing')
    return finish(signal)
  }
  return retry(attempt, { policy, signal, isRetriable, onWait: () => report('waiting'), ...(wait && { wait }) })
}
