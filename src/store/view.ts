// One prefix of the store, kept in memory by list and watch, so that reads are synchronous. A writer that must see its
// own write waits with `reached`. Collections (collection.ts) give the entries their types.
import { setTimeout as sleep } from 'node:timers/promises'
import { SortedKeys } from './sorted-keys.ts'
import {
  type Change,
  changeKey,
  changeRev,
  compareRevs,
  type Entry,
  type EntryPage,
  type Health,
  isFault,
  type Rev,
  type Store,
  zeroRev,
} from './store.ts'

interface ViewOptions {
  /** The wait after the first failure. It doubles up to `maxRetryMs`. */
  readonly retryMs?: number
  readonly maxRetryMs?: number
  /** How long a writer waits to see its write. */
  readonly timeoutMs?: number
}

type ViewListener<T> = (changes: readonly Change<T>[]) => void

interface Waiter extends PromiseWithResolvers<void> {
  readonly rev: Rev
}

export class View<T> {
  readonly prefix: string
  readonly #store: Pick<Store, 'list' | 'watch'>
  readonly #retryMs: number
  readonly #maxRetryMs: number
  readonly #timeoutMs: number
  readonly #entries = new Map<string, Entry<T>>()
  readonly #keys = new SortedKeys()
  readonly #scopeRevs = new Map<string, Rev>()
  readonly #listeners = new Set<ViewListener<T>>()
  readonly #waiters = new Set<Waiter>()
  readonly #stop = new AbortController()
  readonly #followed: Promise<void>
  #rev: Rev = zeroRev
  #lastChangeRev: Rev = zeroRev
  /** The revision of the first list. Changes before it are unknown, so no scope is older. */
  #firstRev: Rev | undefined
  #trouble: string | undefined = 'not read yet'

  constructor(store: Pick<Store, 'list' | 'watch'>, prefix: string, options: ViewOptions = {}) {
    this.#store = store
    this.prefix = prefix
    this.#retryMs = options.retryMs ?? 50
    this.#maxRetryMs = options.maxRetryMs ?? 5_000
    this.#timeoutMs = options.timeoutMs ?? 10_000
    this.#followed = this.#follow(this.#stop.signal)
  }

  get rev(): Rev {
    return this.#rev
  }

  get size(): number {
    return this.#entries.size
  }

  /** The scopes that have or had entries, encoded as in keys. */
  get scopes(): Iterable<string> {
    return this.#scopeRevs.keys()
  }

  /** Returns the same object until the entry changes. */
  get(key: string): Entry<T> | undefined {
    return this.#entries.get(key)
  }

  /** Iterates over the live map in no order, without copying it. */
  values(): Iterable<Entry<T>> {
    return this.#entries.values()
  }

  /**
   * Entries in order of key. `scope` is the first segment of the key after the prefix, or '' for everything; `after` is
   * a key.
   */
  range(scope = '', page: { readonly after?: string; readonly limit?: number } = {}): Entry<T>[] {
    const prefix = scope === '' ? this.prefix : `${this.prefix}${scope}/`
    return this.#keys.range(prefix, page.after, page.limit).map((key) => this.#entries.get(key) as Entry<T>)
  }

  /** The revision of the last change in the scope. While it stays the same, so do the entries. */
  revOf(scope = ''): Rev {
    const rev = scope === '' ? this.#lastChangeRev : this.#scopeRevs.get(scope)
    return rev ?? this.#firstRev ?? zeroRev
  }

  /** Resolves once the view has every change up to `rev`. A revision of another prefix waits for the next bookmark. */
  async reached(rev: Rev, signal?: AbortSignal): Promise<void> {
    if (this.#has(rev)) return
    signal?.throwIfAborted()
    const waiter = this.#wait(rev)
    const abort = (): void => waiter.reject(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      await waiter.promise
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#waiters.delete(waiter)
    }
  }

  /** As `reached`, for writers. Rejects after `timeoutMs`, because a view that does not follow the store is a fault. */
  async reachedSoon(rev: Rev): Promise<void> {
    if (this.#has(rev)) return
    const waiter = this.#wait(rev)
    const late = new Error(`${this.prefix} has not reached revision ${rev} within ${this.#timeoutMs} ms`)
    const timer = setTimeout(() => waiter.reject(late), this.#timeoutMs).unref()
    try {
      await waiter.promise
    } finally {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    }
  }

  #has(rev: Rev): boolean {
    return this.#firstRev !== undefined && compareRevs(this.#rev, rev) >= 0
  }

  #wait(rev: Rev): Waiter {
    const waiter = { rev, ...Promise.withResolvers<void>() }
    if (this.#stop.signal.aborted) waiter.reject(this.#stop.signal.reason)
    else this.#waiters.add(waiter)
    return waiter
  }

  synced(signal?: AbortSignal): Promise<void> {
    return this.reached(zeroRev, signal)
  }

  /**
   * Calls `listener` with every change in order, after the view has it. Returns how to unsubscribe. A listener MUST NOT
   * throw.
   */
  subscribe(listener: ViewListener<T>): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  health(): Health {
    if (this.#trouble === undefined) return { ok: true, message: `${this.prefix} is current at revision ${this.#rev}` }
    return { ok: false, message: `${this.prefix} may be out of date: ${this.#trouble}` }
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error(`The view of ${this.prefix} is closed`))
    for (const waiter of this.#waiters) waiter.reject(this.#stop.signal.reason)
    await this.#followed
  }

  async #follow(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      try {
        this.#install(await this.#store.list(this.prefix))
        for await (const batch of this.#store.watch(this.prefix, this.#rev, signal, { isPrompt: true })) {
          failures = 0
          if ('type' in batch) this.#advance(batch.rev)
          else this.#apply(batch as readonly Change<T>[])
        }
        this.#trouble = 'the store is closed'
      } catch (error) {
        this.#trouble = error instanceof Error ? error.message : String(error)
        // Callers that wait for the first list are rejected, because waiting longer does not help.
        if (isFault(error, 'Damaged') && this.#firstRev === undefined)
          for (const waiter of this.#waiters) waiter.reject(error)
        // The first Compacted is how the store asks for a new list, and is not a failure.
        if (isFault(error, 'Compacted') && failures++ === 0) continue
      }
      // Waits at least half of the time, so that many views do not retry together.
      const delayMs = Math.min(this.#retryMs * 2 ** failures++, this.#maxRetryMs) * (0.5 + Math.random() / 2)
      await sleep(delayMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  /** Applies a whole list: differences from the current entries become changes like any other. */
  #install(page: EntryPage): void {
    const listed = new Map(page.entries.map((entry) => [entry.key, entry as Entry<T>]))
    const changes: Change<T>[] = []
    for (const entry of listed.values()) {
      const previous = this.#entries.get(entry.key)
      if (previous?.rev !== entry.rev) changes.push({ type: 'put', entry, ...(previous && { previous }) })
    }
    for (const [key, previous] of this.#entries)
      if (!listed.has(key)) changes.push({ type: 'delete', key, rev: page.rev, previous })
    changes.sort((a, b) => compareRevs(changeRev(a as Change), changeRev(b as Change)))
    this.#trouble = undefined
    if (this.#firstRev === undefined) this.#firstRev = this.#lastChangeRev = page.rev
    this.#update(changes, page.rev)
    this.#keys.load(this.#entries.keys())
    this.#announce(changes, page.rev)
  }

  #apply(received: readonly Change<T>[]): void {
    const last = received.at(-1)
    if (!last) return
    const changes = this.#update(received)
    for (const change of changes) {
      if (change.type === 'delete') this.#keys.delete(change.key)
      else if (!change.previous) this.#keys.add(change.entry.key)
    }
    this.#announce(changes, changeRev(last as Change))
  }

  /**
   * `at`, the revision of a list, replaces those of its changes, because earlier changes are unknown. Returns the
   * changes with the previous entries of this view, so that caches keyed by entry still find them.
   */
  #update(changes: readonly Change<T>[], at?: Rev): readonly Change<T>[] {
    return changes.map((change) => {
      const key = changeKey(change as Change)
      const previous = this.#entries.get(key)
      if (change.type === 'put') this.#entries.set(key, change.entry)
      else this.#entries.delete(key)
      const rev = at ?? changeRev(change as Change)
      this.#lastChangeRev = rev
      const slash = key.indexOf('/', this.prefix.length)
      if (slash >= 0) this.#scopeRevs.set(key.slice(this.prefix.length, slash), rev)
      return previous && previous.rev === change.previous?.rev ? { ...change, previous } : change
    })
  }

  #announce(changes: readonly Change<T>[], rev: Rev): void {
    this.#advance(rev)
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes)
  }

  #advance(rev: Rev): void {
    this.#rev = rev
    for (const waiter of this.#waiters) if (compareRevs(rev, waiter.rev) >= 0) waiter.resolve()
  }
}
