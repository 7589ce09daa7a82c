// An upload that outlives cut connections: piece after piece from the offset that the service has, until it has all.
// Knows neither the page nor the network; those are handed in.

interface UploadSteps<T> {
  /** Begins, or finds what was begun for the same file before: how many bytes are there. */
  readonly begin: (signal: AbortSignal) => Promise<number>
  /** Sends a piece; how many bytes are there now. Throws when the connection was cut or the service refused. */
  readonly send: (from: number, to: number, signal: AbortSignal) => Promise<number>
  readonly finish: (signal: AbortSignal) => Promise<T>
  /** Whether the same can be tried again after this failure. */
  readonly isRetriable: (error: unknown) => boolean
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
  readonly nowMs: () => number
}

export interface UploadProgress {
  readonly phase: 'sending' | 'waiting' | 'finishing'
  readonly bytes: number
  /** There before this page began. */
  readonly resumedAt: number
  readonly bytesPerSecond: number | undefined
}

export const pieceBytes = 8 * 1_048_576
const firstWaitMs = 500
const longestWaitMs = 8_000

export async function upload<T>(
  size: number,
  steps: UploadSteps<T>,
  tell: (progress: UploadProgress) => void,
  signal: AbortSignal,
): Promise<T> {
  let resumedAt: number | undefined
  let bytes = 0
  let waitMs = firstWaitMs
  let startedMs = steps.nowMs()
  let startedAt = 0
  const progress = (phase: UploadProgress['phase']): void => {
    const seconds = (steps.nowMs() - startedMs) / 1_000
    const bytesPerSecond = seconds > 0.5 && bytes > startedAt ? (bytes - startedAt) / seconds : undefined
    tell({ phase, bytes, resumedAt: resumedAt ?? 0, bytesPerSecond })
  }
  for (;;) {
    try {
      bytes = await steps.begin(signal)
      resumedAt ??= bytes
      startedAt = bytes
      startedMs = steps.nowMs()
      progress('sending')
      while (bytes < size) {
        bytes = await steps.send(bytes, Math.min(size, bytes + pieceBytes), signal)
        waitMs = firstWaitMs
        progress('sending')
      }
      progress('finishing')
      return await steps.finish(signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!steps.isRetriable(error)) throw error
      progress('waiting')
      await steps.wait(waitMs, signal)
      waitMs = Math.min(longestWaitMs, waitMs * 2)
    }
  }
}
