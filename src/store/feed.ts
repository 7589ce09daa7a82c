// What engines share for watch: committed batches fan out to watchers. A watcher reads the past from the log in pages,
// then follows live; one that falls behind goes back to the log, so that its memory never depends on its slowness.
import { closed, compacted } from './faults.ts'
import {
  type Bookmark,
  type Change,
  changeKey,
  changeRev,
  compareRevs,
  type Rev,
  type StoreError,
  type StoreWatchOptions,
} from './store.ts'

export interface FeedOptions {
  /** How often a watcher hears that other prefixes have moved on. */
  readonly bookmarkMs?: number
  /** So many changes may wait for one watcher before it goes back to the log. */
  readonly maxQueuedChanges?: number
}

export interface LogPage {
  readonly changes: readonly Change[]
  /** The log was read up to here: greater than the `after` it was asked for, unless that is the end. */
  readonly rev: Rev
}

/** The changes under `prefix` after `after`, a page of them. MUST throw Compacted when they are gone. */
type ReadLog = (prefix: string, after: Rev) => Promise<LogPage>

interface Batch {
  readonly changes: readonly Change[]
  readonly rev: Rev
}

interface Watcher {
  queue: Batch[]
  queuedChanges: number
  /** The queue lacks changes up to here: they are in the log. */
  missedTo: Rev
  bookmarkDue: boolean
  readonly isPrompt: boolean
  wake: () => void
}

const asleep = (): void => {}

export class ChangeFeed {
  readonly #readLog: ReadLog
  readonly #bookmarkMs: number
  readonly #maxQueuedChanges: number
  /** A bookmark comes at least this often, so that neither end takes the other for dead. */
  readonly #quietMs: number
  readonly #watchers = new Map<string, Set<Watcher>>()
  #rev: Rev
  #ended: { readonly error?: StoreError } | undefined
  #ticker: NodeJS.Timeout | undefined

  constructor(readLog: ReadLog, rev: Rev, options: FeedOptions = {}) {
    this.#readLog = readLog
    this.#rev = rev
    this.#bookmarkMs = options.bookmarkMs ?? 5_000
    this.#maxQueuedChanges = options.maxQueuedChanges ?? 10_000
    this.#quietMs = 6 * this.#bookmarkMs
  }

  /** Everything up to here has been published. */
  get rev(): Rev {
    return this.#rev
  }

  /** A commit: its changes in order, and the revision it reaches. */
  publish(changes: readonly Change[], rev: Rev): void {
    this.#rev = rev
    const touched = new Map<Set<Watcher>, Change[]>()
    for (const change of changes) {
      const key = changeKey(change)
      for (const [prefix, watchers] of this.#watchers) {
        if (!key.startsWith(prefix)) continue
        const own = touched.get(watchers)
        if (own) own.push(change)
        else touched.set(watchers, [change])
      }
    }
    for (const [watchers, own] of touched) {
      const batch = { changes: own, rev }
      for (const watcher of watchers) this.#enqueue(watcher, batch)
    }
  }

  /** Changes up to `rev` were not seen here: watchers go to the log for them, which may have to refuse. */
  skipTo(rev: Rev): void {
    this.#rev = rev
    for (const watchers of this.#watchers.values()) for (const watcher of watchers) this.#sendToLog(watcher, rev)
  }

  #sendToLog(watcher: Watcher, rev: Rev): void {
    watcher.queue = []
    watcher.queuedChanges = 0
    watcher.missedTo = rev
    watcher.wake()
  }

  #enqueue(watcher: Watcher, batch: Batch): void {
    if (watcher.queuedChanges + batch.changes.length > this.#maxQueuedChanges) this.#sendToLog(watcher, batch.rev)
    else {
      watcher.queue.push(batch)
      watcher.queuedChanges += batch.changes.length
      watcher.wake()
    }
  }

  /** Everything up to `rev` has been published, and prompt watchers are told; Compacted for what is in the future. */
  assertReached(rev: Rev): void {
    this.#assertPast(rev)
    this.#remind(true)
  }

  #assertPast(rev: Rev): void {
    if (this.#ended) throw this.#ended.error ?? closed()
    if (!/^\d+$/.test(rev) || compareRevs(rev, this.#rev) > 0) throw compacted(rev)
  }

  async *watch(
    prefix: string,
    after: Rev,
    signal: AbortSignal,
    { isPrompt = false, through = (changes) => changes }: StoreWatchOptions = {},
  ): AsyncGenerator<readonly Change[] | Bookmark, void> {
    this.#assertPast(after)
    const fresh = { queue: [], queuedChanges: 0, missedTo: this.#rev, bookmarkDue: true }
    const watcher: Watcher = { ...fresh, isPrompt, wake: asleep }
    // A reader that was aborted may never ask again: it leaves at once, whatever it is doing.
    const leave = (): void => {
      this.#remove(prefix, watcher)
      watcher.wake()
    }
    signal.addEventListener('abort', leave, { once: true })
    this.#add(prefix, watcher)
    let position = after
    let bookmarked: Rev | undefined
    let bookmarkedMs = 0
    try {
      while (!signal.aborted) {
        const batch = compareRevs(position, watcher.missedTo) < 0 ? await this.#past(prefix, position) : next(watcher)
        if (batch) {
          // What was read from the log may wait in the queue as well.
          const isNew = compareRevs(batch.rev, position) > 0
          const changes = isNew ? newerThan(batch.changes, position) : []
          if (isNew) position = batch.rev
          if (changes.length > 0 && !signal.aborted) yield through(changes)
        } else if (this.#isOver()) {
          // Only after everything that was committed has been delivered.
          return
        } else if (watcher.bookmarkDue) {
          watcher.bookmarkDue = false
          // The queue is empty, so whatever was published since belongs to other prefixes.
          position = this.#rev
          const nowMs = performance.now()
          if (position !== bookmarked || nowMs - bookmarkedMs > this.#quietMs) {
            bookmarked = position
            bookmarkedMs = nowMs
            yield { type: 'bookmark', rev: position }
          }
        } else {
          await new Promise<void>((resolve) => {
            watcher.wake = resolve
          })
          watcher.wake = asleep
        }
      }
    } finally {
      signal.removeEventListener('abort', leave)
      this.#remove(prefix, watcher)
    }
  }

  /** A page of the log; an empty one when the store was closed meanwhile, which the caller looks at next. */
  async #past(prefix: string, after: Rev): Promise<Batch> {
    try {
      return await this.#readLog(prefix, after)
    } catch (error) {
      // The log cannot be read any more: what it still held is for the next start.
      if (this.#isOver()) return { changes: [], rev: this.#rev }
      throw error
    }
  }

  #isOver(): boolean {
    if (this.#ended?.error) throw this.#ended.error
    return this.#ended !== undefined
  }

  /** Ends every watch: quietly, or with the error that ended the store. */
  end(error?: StoreError): void {
    if (this.#ended) return
    this.#ended = error ? { error } : {}
    for (const watchers of this.#watchers.values()) for (const watcher of watchers) watcher.wake()
  }

  #add(prefix: string, watcher: Watcher): void {
    const watchers = this.#watchers.get(prefix)
    if (watchers) watchers.add(watcher)
    else this.#watchers.set(prefix, new Set([watcher]))
    this.#ticker ??= setInterval(() => this.#remind(false), this.#bookmarkMs).unref()
  }

  #remove(prefix: string, watcher: Watcher): void {
    const watchers = this.#watchers.get(prefix)
    if (!watchers?.delete(watcher) || watchers.size > 0) return
    this.#watchers.delete(prefix)
    if (this.#watchers.size > 0) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  #remind(onlyPrompt: boolean): void {
    for (const watchers of this.#watchers.values())
      for (const watcher of watchers) {
        if (onlyPrompt && !watcher.isPrompt) continue
        watcher.bookmarkDue = true
        watcher.wake()
      }
  }
}

function next(watcher: Watcher): Batch | undefined {
  const batch = watcher.queue.shift()
  if (batch) watcher.queuedChanges -= batch.changes.length
  return batch
}

/** The same array when all of it is new, which is nearly always: batches are shared, not copied. */
function newerThan(changes: readonly Change[], rev: Rev): readonly Change[] {
  const first = changes[0]
  if (!first || compareRevs(changeRev(first), rev) > 0) return changes
  return changes.filter((change) => compareRevs(changeRev(change), rev) > 0)
}
