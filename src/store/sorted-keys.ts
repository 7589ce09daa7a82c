// Sorted keys, for reading ranges at the cost of what is returned. They are kept in runs, so that adding or removing a
// key moves a few hundred keys and not all of them.
import { compareKeys } from './keys.ts'

const longestRun = 512

export class SortedKeys {
  /** Sorted runs of sorted keys. No run is empty. */
  #runs: string[][] = []

  load(keys: Iterable<string>): void {
    const sorted = [...keys].sort(compareKeys)
    this.#runs = []
    for (let at = 0; at < sorted.length; at += longestRun / 2) this.#runs.push(sorted.slice(at, at + longestRun / 2))
  }

  add(key: string): void {
    const index = this.#runOf(key)
    const run = this.#runs[index]
    if (!run) return void this.#runs.push([key])
    const at = this.#position(run, key)
    if (run[at] === key) return
    run.splice(at, 0, key)
    if (run.length > longestRun) this.#runs.splice(index + 1, 0, run.splice(longestRun / 2))
  }

  delete(key: string): void {
    const index = this.#runOf(key)
    const run = this.#runs[index]
    if (!run) return
    const at = this.#position(run, key)
    if (run[at] !== key) return
    run.splice(at, 1)
    if (run.length === 0) this.#runs.splice(index, 1)
  }

  range(prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
    const found: string[] = []
    const from = compareKeys(after, prefix) > 0 ? after : prefix
    let index = this.#runOf(from)
    let run = this.#runs[index]
    let at = run ? this.#position(run, from) : 0
    while (run && found.length < limit) {
      const key = run[at++]
      if (key === undefined) {
        run = this.#runs[++index]
        at = 0
      } else if (key !== after) {
        if (!key.startsWith(prefix)) break
        found.push(key)
      }
    }
    return found
  }

  /** The run that contains `key`, or would contain it: the last one that does not begin after it. */
  #runOf(key: string): number {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareKeys(key, this.#runs[middle]?.[0] as string) < 0) high = middle
      else low = middle + 1
    }
    return Math.max(0, low - 1)
  }

  /** The index of `key` in its run, or where it would be. */
  #position(run: readonly string[], key: string): number {
    let low = 0
    let high = run.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareKeys(run[middle] as string, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
