// Sends the latest of many values: one at a time, limited in rate, and always the last one.

export interface Reporter<T> extends AsyncDisposable {
  report(value: T): void
  /** Also sends a pending value. Throws if that fails. */
  end(): Promise<void>
  /** Drops a pending value. */
  [Symbol.asyncDispose](): Promise<void>
}

interface ReporterOptions {
  /** Called when a value could not be sent. The reporter continues. */
  failed?(error: unknown): void
  /** Delays the first value as well, because the work may end before it is needed. */
  readonly isPatient?: boolean
  readonly everyMs?: number
}

export function createReporter<T>(sendNow: (value: T) => Promise<unknown>, options: ReporterOptions = {}): Reporter<T> {
  const { failed, isPatient = false, everyMs = 1_000 } = options
  let sentMs = isPatient ? performance.now() : Number.NEGATIVE_INFINITY
  let sending: Promise<unknown> | undefined
  let unsent: { readonly value: T } | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false

  const send = (value: T): Promise<unknown> => {
    sentMs = performance.now()
    unsent = undefined
    return sendNow(value)
  }
  const next = (): void => {
    if (isOver || sending || timer || !unsent) return
    const restMs = sentMs + everyMs - performance.now()
    if (restMs > 0) {
      timer = setTimeout(() => {
        timer = undefined
        next()
      }, restMs)
      return
    }
    sending = send(unsent.value)
      .catch((error: unknown) => failed?.(error))
      .finally(() => {
        sending = undefined
        next()
      })
  }
  const stop = async (): Promise<void> => {
    isOver = true
    clearTimeout(timer)
    await sending
  }
  return {
    report(value) {
      unsent = { value }
      next()
    },
    async end() {
      await stop()
      if (unsent) await send(unsent.value)
    },
    [Symbol.asyncDispose]: stop,
  }
}
