// The latest changes in memory, for watchers that resume after a short time. etcd itself lets watchers of the past wait
// up to 100 ms. Older changes are read from etcd.
import { type Change, changeKey } from '../store.ts'

interface RecentChange {
  readonly change: Change
  readonly revision: number
  readonly bytes: number
}

const maxBytes = 16 * 1_048_576

export class RecentChanges {
  readonly #maxChanges: number
  #kept: RecentChange[] = []
  #bytes = 0
  /** Every change after this revision is kept. */
  #since: number

  constructor(since: number, maxChanges: number) {
    this.#since = since
    this.#maxChanges = maxChanges
  }

  get since(): number {
    return this.#since
  }

  push(change: Change, revision: number, bytes: number): void {
    this.#kept.push({ change, revision, bytes })
    this.#bytes += bytes
    while (this.#kept.length > this.#maxChanges || this.#bytes > maxBytes) {
      const oldest = this.#kept.shift()
      if (!oldest) return
      this.#bytes -= oldest.bytes
      this.#since = oldest.revision
    }
  }

  /** Forgets everything up to `revision`, after a gap. */
  restart(revision: number): void {
    this.#kept = []
    this.#bytes = 0
    this.#since = revision
  }

  /** `revision` must not be before `since`. */
  after(revision: number, prefix: string): Change[] {
    return this.#kept
      .filter((kept) => kept.revision > revision && changeKey(kept.change).startsWith(prefix))
      .map(({ change }) => change)
  }
}
