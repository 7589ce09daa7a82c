// One kind of record: typed reads from memory, typed writes to the store. Every write waits until the view has applied
// it, so a writer sees its own writes, and a writer that lost a race sees what won before it retries.
import { expected } from './expectation.ts'
import { assertReal } from './rehearsal.ts'
import type { Shares } from './shares.ts'
import {
  compareRevs,
  type Entry,
  isFault,
  type Json,
  type Precondition,
  PreconditionFailed,
  type Rev,
  type Store,
  StoreError,
} from './store.ts'
import type { View } from './view.ts'

/** Changes of other servers usually arrive within milliseconds. A writer that lost a race waits no longer than this. */
const lostMs = 1_000
const isLost = (error: unknown): boolean =>
  isFault(error, 'AlreadyExists') || isFault(error, 'Conflict') || isFault(error, 'NotFound')

type Current<T> = [value: T | undefined, entry: Entry<T> | undefined]
type Next<T> = (...current: Current<T>) => T | null | undefined | Promise<T | null | undefined>

/** Adjusts a value before it replaces another one, for example to count its changes. */
type Revised<T> = (before: T, after: T) => T

const encoded = (name: string): string => (/^[\w.-]*$/.test(name) ? name : encodeURIComponent(name))

export const scopeOf = (prefix: string, key: string): string =>
  decodeURIComponent(key.slice(prefix.length, Math.max(prefix.length, key.lastIndexOf('/'))))

export class Collection<T> {
  readonly prefix: string
  readonly view: View<T>
  readonly #store: Store
  readonly #revised: Revised<T>
  /** Defined for kinds whose records belong to namespaces or callers. */
  readonly shares: Shares<T> | undefined

  constructor(
    store: Store,
    view: View<T>,
    prefix: string,
    revised: Revised<T> = (_before, after) => after,
    shares?: Shares<T>,
  ) {
    this.#store = store
    this.view = view
    this.prefix = prefix
    this.#revised = revised
    this.shares = shares
  }

  /**
   * Returns `/prefix/scope/name`, or `/prefix/name` for records of the whole cluster (scope ''). Encoding keeps a name
   * from leaving its scope.
   */
  key(scope: string, name: string): string {
    return scope === '' ? this.prefix + encoded(name) : `${this.prefix}${encoded(scope)}/${encoded(name)}`
  }

  scopeOf(key: string): string {
    return scopeOf(this.prefix, key)
  }

  get(scope: string, name: string): Entry<T> | undefined {
    return this.at(this.key(scope, name))
  }

  at(key: string): Entry<T> | undefined {
    return this.view.get(key)
  }

  list(scope = ''): readonly Entry<T>[] {
    return this.view.range(encodeURIComponent(scope))
  }

  /** All entries in no order. For long scans that yield to other work in between, during which entries may change. */
  each(): Iterable<Entry<T>> {
    return this.view.values()
  }

  watch(scope: string, after: Rev, signal: AbortSignal): ReturnType<Store['watch']> {
    return this.#store.watch(scope === '' ? this.prefix : `${this.prefix}${encodeURIComponent(scope)}/`, after, signal)
  }

  /** Throws PreconditionFailed unless each of `preconditions` is still as it was read. */
  create(scope: string, name: string, value: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    return this.#create(this.key(scope, name), value, preconditions)
  }

  async #create(key: string, requested: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    const { value, made } = expected(key, undefined, requested)
    const isTaken = this.at(key) !== undefined
    const release = isTaken ? undefined : this.shares?.reserve(key, value)
    try {
      assertReal(key, value, isTaken)
      const created = await this.#store.create(key, value as Json, preconditions)
      made()
      if (!this.#has(created.rev)) await this.#reached(created.rev)
      return created as Entry<T>
    } catch (error) {
      return await this.#lost(error, () => this.at(key) !== undefined)
    } finally {
      release?.()
    }
  }

  async update(entry: Entry<T>, requested: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    const { value: added, made } = expected(entry.key, entry.rev, requested)
    const value = this.#revised(entry.value, added)
    const release = this.shares?.reserve(entry.key, value, entry)
    try {
      assertReal(entry.key, value)
      const updated = await this.#store.update(entry.key, value as Json, entry.rev, preconditions)
      made()
      if (!this.#has(updated.rev)) await this.#reached(updated.rev)
      return updated as Entry<T>
    } catch (error) {
      return await this.#lost(error, () => this.at(entry.key)?.rev !== entry.rev)
    } finally {
      release?.()
    }
  }

  async delete(entry: Entry<T>): Promise<Rev> {
    const { made } = expected(entry.key, entry.rev, undefined)
    assertReal(entry.key, undefined)
    try {
      const rev = await this.#store.delete(entry.key, entry.rev)
      made()
      if (!this.#has(rev)) await this.#reached(rev)
      return rev
    } catch (error) {
      return this.#lost(error, () => this.at(entry.key)?.rev !== entry.rev)
    }
  }

  /**
   * Reads, applies `next` and writes by compare-and-set, again if another writer was first. `next` gets the current
   * value, or undefined if there is none, and returns the new one. Null deletes the record; undefined, or the same
   * object, leaves it unchanged. `next` may be called several times, and what it throws ends the change. Returns the
   * final entry. `preconditions` do not apply to deletions.
   */
  change(key: string, next: (...current: Current<T>) => T, preconditions?: readonly Precondition[]): Promise<Entry<T>>
  change(key: string, next: Next<T>, preconditions?: readonly Precondition[]): Promise<Entry<T> | undefined>
  async change(key: string, next: Next<T>, preconditions?: readonly Precondition[]): Promise<Entry<T> | undefined> {
    for (;;) {
      const entry = this.at(key)
      const value = await next(entry?.value, entry)
      if (value === undefined || value === entry?.value || (value === null && !entry)) return entry
      try {
        if (value !== null)
          return await (entry ? this.update(entry, value, preconditions) : this.#create(key, value, preconditions))
        if (entry) await this.delete(entry)
        return undefined
      } catch (error) {
        if (!isLost(error) || error instanceof PreconditionFailed) throw error
      }
    }
  }

  /** Rethrows `error`. After a lost race it first waits for the winner's change, so that a retry can succeed. */
  async #lost(error: unknown, isSeen: () => boolean): Promise<never> {
    // A precondition may belong to another collection; see `moved`.
    if (isLost(error) && !(error instanceof PreconditionFailed)) await this.#seen(isSeen)
    throw error
  }

  /** Waits briefly until the change of a record that failed a precondition is seen here. */
  moved(entry: Precondition): Promise<void> {
    return this.#seen(() => this.at(entry.key)?.rev !== entry.rev)
  }

  async #seen(isSeen: () => boolean): Promise<void> {
    if (isSeen()) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        unsubscribe()
        resolve()
      }
      const unsubscribe = this.view.subscribe(() => isSeen() && done())
      const timer = setTimeout(done, lostMs)
    })
  }

  #has(rev: Rev): boolean {
    return compareRevs(this.view.rev, rev) >= 0
  }

  async #reached(rev: Rev): Promise<void> {
    try {
      await this.view.reachedSoon(rev)
    } catch (cause) {
      const message = `The change of ${this.prefix} was written, but this server has not seen it yet`
      throw new StoreError('Unknown', message, { cause })
    }
  }
}
