// Waits for a record to reach a condition, without polling: one subscription to the store, and a map from key to
// waiters.
import type { Entry } from '../../store/store.ts'
import type { View } from '../../store/view.ts'

interface Patience {
  /** As long as a timer can wait, at most. */
  readonly ms: number
  /** Of the service: they outlive who waits, and have one listener, however many do. */
  readonly interruptions?: readonly AbortSignal[]
  /** The caller's own. */
  readonly signal?: AbortSignal | undefined
}

export class WaitedTooLong extends Error {
  override readonly name = 'WaitedTooLong'
}

interface Waiter<T> {
  readonly interruptions: readonly AbortSignal[]
  look(entry: Entry<T> | undefined): void
  fail(reason: unknown): void
}

const longestMs = 2 ** 31 - 1

export class Waits<T> {
  readonly #view: View<T>
  readonly #waiting = new Map<string, Waiter<T>[]>()
  readonly #followed = new Set<AbortSignal>()
  readonly stop: () => void

  constructor(view: View<T>) {
    this.#view = view
    this.stop = view.subscribe((changes) => {
      for (const change of changes) {
        const [key, entry] = change.type === 'put' ? [change.entry.key, change.entry] : [change.key, undefined]
        for (const waiter of this.#waiting.get(key) ?? []) waiter.look(entry)
      }
    })
  }

  /**
   * The first answer of `test` that is not undefined, asked now and after every change of the record (undefined: it is
   * gone). Throws WaitedTooLong, or the reason of the signal that aborts first.
   */
  until<R>(key: string, test: (entry: Entry<T> | undefined) => R | undefined, patience: Patience): Promise<R> {
    const { ms, interruptions = [], signal } = patience
    return new Promise((resolve, reject) => {
      const over = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#leave(key, waiter)
      }
      const fail = (reason: unknown): void => {
        over()
        reject(reason)
      }
      const abort = (): void => fail(signal?.reason)
      const look = (entry: Entry<T> | undefined): void => {
        try {
          const result = test(entry)
          if (result === undefined) return
          over()
          resolve(result)
        } catch (error) {
          fail(error)
        }
      }
      const timer = setTimeout(() => fail(new WaitedTooLong()), Math.min(ms, longestMs)).unref()
      const waiter: Waiter<T> = { interruptions, look, fail }
      // Another array each time: whoever looks at all of them goes on with those that were there.
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), waiter])
      signal?.addEventListener('abort', abort, { once: true })
      const aborted = [signal, ...interruptions].find((each) => each?.aborted)
      if (aborted) return fail(aborted.reason)
      for (const each of interruptions) this.#follow(each)
      look(this.#view.get(key))
    })
  }

  #leave(key: string, waiter: Waiter<T>): void {
    const left = (this.#waiting.get(key) ?? []).filter((each) => each !== waiter)
    if (left.length > 0) this.#waiting.set(key, left)
    else this.#waiting.delete(key)
    // Maps hold for a while what was in them: of who waits no more, let that be nothing.
    waiter.look = over
    waiter.fail = over
  }

  #follow(signal: AbortSignal): void {
    if (this.#followed.has(signal)) return
    this.#followed.add(signal)
    const abort = (): void => {
      this.#followed.delete(signal)
      for (const waiter of [...this.#waiting.values()].flat())
        if (waiter.interruptions.includes(signal)) waiter.fail(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
  }
}

const over = (): void => {}
