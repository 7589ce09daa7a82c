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
    const found: string[] = []
    const from = compareKeys(after, prefix) > 0 ? after : prefix
    for (let at = this.#position(from); at < this.#keys.length && found.length < limit; at++) {
      const key = this.#keys[at] as string
      if (key === after) continue
      if (!key.startsWith(prefix)) break
      found.push(key)
    }
    return found
  }

  /** The index of `key`, or where it would be. */
  #position(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareKeys(this.#keys[middle] as string, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
