// Reports the newest of many values: one at a time, not too often, and the last one always, so that whoever reads them never
// sees for long what is no longer true.

export interface Reporter<T> extends AsyncDisposable {
  report(value: T): void
  /** Also sends what was held back; throws what that throws. */
  end(): Promise<void>
  /** Without what was held back. */
  [Symbol.asyncDispose](): Promise<void>
}

interface ReporterOptions {
  /** Why a report could not be sent; the work that it is about goes on. */
  failed?(error: unknown): void
  /** The first value waits, too: there may be no need for any. */
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
