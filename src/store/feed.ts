// The watch of all engines: committed batches fan out to watchers. A watcher reads the past from the log in pages and
// then follows live. One that falls behind returns to the log, so its memory does not depend on how slow it is.
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
  /** How often watchers get a bookmark when other prefixes have changed. */
  readonly bookmarkMs?: number
  /** A watcher with more queued changes returns to the log. */
  readonly maxQueuedChanges?: number
}

export interface LogPage {
  readonly changes: readonly Change[]
  /** The log was read up to here. Greater than the requested `after`, unless that is the end. */
  readonly rev: Rev
}

/** Returns a page of the changes under `prefix` after `after`. MUST throw Compacted if they were compacted. */
type ReadLog = (prefix: string, after: Rev) => Promise<LogPage>

interface Batch {
  readonly changes: readonly Change[]
  readonly rev: Rev
}

interface Watcher {
  queue: Batch[]
  queuedChanges: number
  /** The queue lacks the changes up to here; they are in the log. */
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
  /** A bookmark is sent at least this often, so that neither end of a client's watch considers the other dead. */
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

  get rev(): Rev {
    return this.#rev
  }

  /** Publishes a commit: its changes in order, and its revision. */
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

  /** Advances to `rev`. Watchers read the changes up to it from the log, or get Compacted if the log lacks them. */
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

  /** Throws Compacted if `rev` is in the future. Prompt watchers get a bookmark. */
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
    { isPrompt = false }: StoreWatchOptions = {},
  ): AsyncGenerator<readonly Change[] | Bookmark, void> {
    this.#assertPast(after)
    const fresh = { queue: [], queuedChanges: 0, missedTo: this.#rev, bookmarkDue: true }
    const watcher: Watcher = { ...fresh, isPrompt, wake: asleep }
    // An aborted reader may never call `next` again, so it is removed at once.
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
          // Changes that were read from the log may be queued as well.
          const isNew = compareRevs(batch.rev, position) > 0
          const changes = isNew ? newerThan(batch.changes, position) : []
          if (isNew) position = batch.rev
          if (changes.length > 0 && !signal.aborted) yield changes
        } else if (this.#isOver()) {
          // Everything that was committed has been delivered by now.
          return
        } else if (watcher.bookmarkDue) {
          watcher.bookmarkDue = false
          // The queue is empty, so everything published after `position` belongs to other prefixes.
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

  /** Returns a page of the log, or an empty page if the store was closed in between, which the caller checks next. */
  async #past(prefix: string, after: Rev): Promise<Batch> {
    try {
      return await this.#readLog(prefix, after)
    } catch (error) {
      if (this.#isOver()) return { changes: [], rev: this.#rev }
      throw error
    }
  }

  #isOver(): boolean {
    if (this.#ended?.error) throw this.#ended.error
    return this.#ended !== undefined
  }

  /** Ends every watch, with an error if the store has failed. */
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

/** Returns `changes` itself if all are newer, as they usually are. Watchers share it, so it must not be altered. */
function newerThan(changes: readonly Change[], rev: Rev): readonly Change[] {
  const first = changes[0]
  if (!first || compareRevs(changeRev(first), rev) > 0) return changes
  return changes.filter((change) => compareRevs(changeRev(change), rev) > 0)
}
