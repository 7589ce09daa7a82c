// An upload in chunks that survives lost connections: it continues from the offset that the server has. The steps are
// passed in, so it depends on neither the page nor the network.

interface UploadSteps<T> {
  /** Starts an upload, or finds the one started for the same file. Returns how many bytes the server has. */
  readonly begin: (signal: AbortSignal) => Promise<number>
  /**
   * Sends a chunk and returns how many bytes the server has. Throws if the connection is lost or the server refuses.
   */
  readonly send: (from: number, to: number, signal: AbortSignal) => Promise<number>
  readonly finish: (signal: AbortSignal) => Promise<T>
  readonly isRetriable: (error: unknown) => boolean
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
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
