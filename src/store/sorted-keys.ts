// Sorted keys, for reading ranges at the cost of what is returned.
import { compareKeys } from './keys.ts'

export class SortedKeys {
  #keys: string[] = []

  load(keys: Iterable<string>): void {
    this.#keys = [...keys].sort(compareKeys)
  }

  add(key: string): void {
    const at = this.#position(key)
    if (this.#keys[at] !== key) this.#keys.splice(at, 0, key)
  }

  delete(key: string): void {
    const at = this.#position(key)
    if (this.#keys[at] === key) this.#keys.splice(at, 1)
  }

  range(prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
    const first = this.#position(compareKeys(after, prefix) > 0 ? after : prefix)
    const from = this.#keys[first] === after ? first + 1 : first
    const end = this.#firstNot((key) => compareKeys(key, prefix) < 0 || key.startsWith(prefix))
    return this.#keys.slice(from, Math.min(end, from + limit))
  }

  /** The index of `key`, or where it would be. */
  #position(key: string): number {
    return this.#firstNot((other) => compareKeys(other, key) < 0)
  }

  /** The index of the first key that is not before, or the number of keys. */
  #firstNot(isBefore: (key: string) => boolean): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(this.#keys[middle] as string)) low = middle + 1
      else high = middle
    }
    return low
  }
}
