// How far a capture is, told to the server: not too often, one at a time, and the last word when it is over.

export interface CaptureProgress {
  readonly percent: number
  readonly bytes: number
  /** What is being done, or waited for. */
  readonly phase?: string
  /** push only. */
  readonly bytesTotal?: number
  readonly bytesSkipped?: number
}

export interface Teller {
  tell(progress: CaptureProgress): void
  /** What was held back is told, too. */
  end(): Promise<void>
}

const everyMs = 1_000

/** `failed` is told why something could not be told; that alone is no failure of the capture. */
export function createTeller(
  send: (progress: CaptureProgress) => Promise<void>,
  failed: (error: unknown) => void,
): Teller {
  let toldMs = Number.NEGATIVE_INFINITY
  let telling: Promise<void> | undefined
  let untold: CaptureProgress | undefined
  const report = (progress: CaptureProgress): Promise<void> => {
    toldMs = performance.now()
    untold = undefined
    return send({ ...progress, percent: Math.floor(progress.percent) })
  }
  return {
    tell(progress) {
      untold = progress
      if (telling || performance.now() - toldMs < everyMs) return
      telling = report(progress)
        .catch(failed)
        .finally(() => {
          telling = undefined
        })
    },
    async end() {
      await telling
      if (untold) await report(untold)
    },
  }
}
