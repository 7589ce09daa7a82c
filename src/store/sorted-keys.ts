// Keys in order, for reading ranges at the cost of what is returned. Loading many sorts once.
import { compareKeys, isPlain } from './keys.ts'

export class SortedKeys {
  #keys: string[] = []
  /** All of them: then strings are compared as they are, which costs a tenth. */
  #arePlain = true

  get size(): number {
    return this.#keys.length
  }

  load(keys: Iterable<string>): void {
    this.#keys = [...keys]
    this.#arePlain = this.#keys.every(isPlain)
    // By its own order when there is nothing to compare by.
    this.#keys.sort(this.#arePlain ? undefined : compareKeys)
  }

  add(key: string): void {
    this.#arePlain &&= isPlain(key)
    const at = this.#position(key)
    if (this.#keys[at] !== key) this.#keys.splice(at, 0, key)
  }

  delete(key: string): void {
    const at = this.#position(key)
    if (this.#keys[at] === key) this.#keys.splice(at, 1)
  }

  /** Keys that begin with `prefix` and come after the key `after`, at most `limit` of them. */
  range(prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
    const found: string[] = []
    let at = this.#position(compareKeys(after, prefix) > 0 ? after : prefix)
    if (this.#keys[at] === after) at++
    for (; found.length < limit; at++) {
      const key = this.#keys[at]
      if (key === undefined || !key.startsWith(prefix)) break
      found.push(key)
    }
    return found
  }

  /** Where `key` is, or would be. */
  #position(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      // `middle` is below the length, so the key is there.
      const other = this.#keys[middle] as string
      if (this.#arePlain ? other < key : compareKeys(other, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
