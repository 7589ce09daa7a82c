// Waits for a record to reach a condition, without polling: one subscription to the store, and a map from key to
// waiters.
import type { Entry } from '../../store/store.ts'
import type { View } from '../../store/view.ts'

interface WaitOptions {
  readonly ms: number
  readonly signal?: AbortSignal | undefined
}

export class WaitedTooLong extends Error {
  override readonly name = 'WaitedTooLong'
}

type Waiter<T> = (entry: Entry<T> | undefined) => void

const maxMs = 2 ** 31 - 1

export class Waits<T> {
  readonly #view: View<T>
  readonly #waiting = new Map<string, Set<Waiter<T>>>()
  readonly stop: () => void

  constructor(view: View<T>) {
    this.#view = view
    this.stop = view.subscribe((changes) => {
      for (const change of changes) {
        const [key, entry] = change.type === 'put' ? [change.entry.key, change.entry] : [change.key, undefined]
        for (const look of this.#waiting.get(key) ?? []) look(entry)
      }
    })
  }

  /**
   * Returns the first result of `test` that is not undefined. `test` is called now and after every change of the record,
   * without an entry if there is none. Throws WaitedTooLong, what `test` throws, or the reason of the signal.
   */
  async until<R>(
    key: string,
    test: (entry: Entry<T> | undefined) => R | undefined,
    { ms, signal }: WaitOptions,
  ): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<R>()
    const waiters = this.#waiting.get(key) ?? new Set()
    const look: Waiter<T> = (entry) => {
      try {
        const result = test(entry)
        if (result === undefined) return
        resolve(result)
      } catch (error) {
        reject(error)
      }
      // `test` is not called again for another change of the same batch.
      waiters.delete(look)
    }
    const abort = (): void => reject(signal?.reason)
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => reject(new WaitedTooLong()), Math.min(ms, maxMs)).unref()
    this.#waiting.set(key, waiters.add(look))
    look(this.#view.get(key))
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      waiters.delete(look)
      if (waiters.size === 0) this.#waiting.delete(key)
    }
  }
}
