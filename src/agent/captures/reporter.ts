// Reports to the server how far a capture is: not too often, one at a time, and the last progress when it is over.

export interface CaptureProgress {
  readonly percent: number
  readonly bytes: number
  /** What is being done, or waited for. */
  readonly phase?: string
  /** push only. */
  readonly bytesTotal?: number
  readonly bytesSkipped?: number
}

export interface Reporter {
  report(progress: CaptureProgress): void
  /** Also sends what was held back. */
  end(): Promise<void>
}

const everyMs = 1_000

/** `failed` gets why a report could not be sent; that alone is no failure of the capture. */
export function createReporter(
  sendNow: (progress: CaptureProgress) => Promise<void>,
  failed: (error: unknown) => void,
): Reporter {
  let sentMs = Number.NEGATIVE_INFINITY
  let sending: Promise<void> | undefined
  let unsent: CaptureProgress | undefined
  const send = (progress: CaptureProgress): Promise<void> => {
    sentMs = performance.now()
    unsent = undefined
    return sendNow({ ...progress, percent: Math.floor(progress.percent) })
  }
  return {
    report(progress) {
      unsent = progress
      if (sending || performance.now() - sentMs < everyMs) return
      sending = send(progress)
        .catch(failed)
        .finally(() => {
          sending = undefined
        })
    },
    async end() {
      await sending
      if (unsent) await send(unsent)
    },
  }
}
