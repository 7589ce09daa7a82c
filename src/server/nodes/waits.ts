// Waits for a record to reach a condition, without polling: one subscription to the store, and a map from key to
// waiters.
import type { Entry } from '../../store/store.ts'
import type { View } from '../../store/view.ts'

type Look<T> = (entry: Entry<T> | undefined) => void

export class Waits<T> {
  readonly #view: View<T>
  readonly #waiting = new Map<string, Set<Look<T>>>()
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
   * The first answer of `test` that is not undefined, asked now and after every change of the record (undefined: it is
   * gone). Throws the signal's reason when it aborts first.
   */
  until<R>(key: string, test: (entry: Entry<T> | undefined) => R | undefined, signal: AbortSignal): Promise<R> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        signal.removeEventListener('abort', abort)
        const looks = this.#waiting.get(key)
        looks?.delete(look)
        if (looks?.size === 0) this.#waiting.delete(key)
      }
      const abort = (): void => {
        done()
        reject(signal.reason)
      }
      const look: Look<T> = (entry) => {
        try {
          const result = test(entry)
          if (result === undefined) return
          done()
          resolve(result)
        } catch (error) {
          done()
          reject(error)
        }
      }
      const looks = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, looks.add(look))
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
      else look(this.#view.get(key))
    })
  }
}
