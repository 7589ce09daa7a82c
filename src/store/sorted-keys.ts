// Keys in order, for reading ranges at the cost of what is returned. Loading many sorts once, and so do many that are added
// before anybody reads.
import { compareKeys } from './keys.ts'

/** So many are put in their places one by one; to merge more is cheaper than to move the others for each. */
const fewKeys = 4

export class SortedKeys {
  #keys: string[] = []
  /** Not in their places yet. */
  #added: string[] = []

  get size(): number {
    this.#settle()
    return this.#keys.length
  }

  load(keys: Iterable<string>): void {
    this.#added = []
    this.#keys = [...keys].sort(compareKeys)
  }

  add(key: string): void {
    this.#added.push(key)
  }

  delete(key: string): void {
    this.#settle()
    const at = this.#position(key)
    if (this.#keys[at] === key) this.#keys.splice(at, 1)
  }

  /** Keys that begin with `prefix` and come after the key `after`, at most `limit` of them. */
  range(prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
    this.#settle()
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

  #settle(): void {
    const added = this.#added
    if (added.length === 0) return
    this.#added = []
    if (added.length > fewKeys) this.#keys = merged(this.#keys, added.sort(compareKeys))
    else
      for (const key of added) {
        const at = this.#position(key)
        if (this.#keys[at] !== key) this.#keys.splice(at, 0, key)
      }
  }

  /** Where `key` is, or would be. */
  #position(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      // `middle` is below the length, so the key is there.
      if (compareKeys(this.#keys[middle] ?? '', key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Both are in order; what is in both, or twice in one, is there once. */
function merged(a: readonly string[], b: readonly string[]): string[] {
  const all: string[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [left, right] = [a[i], b[j]]
    const isLeft = right === undefined || (left !== undefined && compareKeys(left, right) <= 0)
    const next = (isLeft ? left : right) as string
    if (all.at(-1) !== next) all.push(next)
    if (isLeft) i++
    else j++
  }
  return all
}
