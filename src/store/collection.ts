// One kind of record: typed reads from memory, typed writes to the store. A writer sees its own writes, because every
// write waits until the view has applied it; and one that lost sees what won, so that a retry helps.
import { expected } from './expectation.ts'
import { assertReal } from './rehearsal.ts'
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

/** What somebody else wrote comes within milliseconds; whoever lost is not held up for longer than this. */
const lostMs = 1_000
const isLost = (error: unknown): boolean =>
  isFault(error, 'AlreadyExists') || isFault(error, 'Conflict') || isFault(error, 'NotFound')

type Current<T> = [value: T | undefined, entry: Entry<T> | undefined]
type Next<T> = (...current: Current<T>) => T | null | undefined | Promise<T | null | undefined>

/** What is written in place of a record, seen what was there: such as a count of its changes. */
type Revised<T> = (before: T, after: T) => T

/** Most names are what they are. */
const encoded = (name: string): string => (/^[\w.-]*$/.test(name) ? name : encodeURIComponent(name))

/** What the records of one kind need of a store. */
export type KindStore = Pick<Store, 'list' | 'watch' | 'create' | 'update' | 'delete'>

export class Collection<T> {
  readonly prefix: string
  readonly view: View<T>
  readonly #store: KindStore
  readonly #revised: Revised<T>

  constructor(store: KindStore, view: View<T>, prefix: string, revised: Revised<T> = (_before, after) => after) {
    this.#store = store
    this.view = view
    this.prefix = prefix
    this.#revised = revised
  }

  /** `/prefix/scope/name`, or `/prefix/name` in the whole cluster (scope ''). A name cannot break out of its place. */
  key(scope: string, name: string): string {
    return scope === '' ? this.prefix + encoded(name) : `${this.prefix}${encoded(scope)}/${encoded(name)}`
  }

  /** What `key` was given. */
  scopeOf(key: string): string {
    return decodeURIComponent(key.slice(this.prefix.length, Math.max(this.prefix.length, key.lastIndexOf('/'))))
  }

  get(scope: string, name: string): Entry<T> | undefined {
    return this.at(this.key(scope, name))
  }

  at(key: string): Entry<T> | undefined {
    return this.view.get(key)
  }

  /** All of a scope, or all there are. */
  list(scope = ''): readonly Entry<T>[] {
    return this.view.range(encodeURIComponent(scope))
  }

  /** All there are, in no order: for who looks at each of very many, and makes way for others in between (createSlices). */
  each(): Iterable<Entry<T>> {
    return this.view.values()
  }

  /** The changes of a scope, or all, after a revision. */
  watch(scope: string, after: Rev, signal: AbortSignal): ReturnType<Store['watch']> {
    return this.#store.watch(scope === '' ? this.prefix : `${this.prefix}${encodeURIComponent(scope)}/`, after, signal)
  }

  /** `preconditions`: only while each of those other records is as it was read (PreconditionFailed). */
  create(scope: string, name: string, value: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    return this.#create(this.key(scope, name), value, preconditions)
  }

  async #create(key: string, asked: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    const { value, made } = expected(key, undefined, asked)
    assertReal(key, value, this.at(key) !== undefined)
    try {
      const created = await this.#store.create(key, value as Json, preconditions)
      made()
      if (!this.#has(created.rev)) await this.#reached(created.rev)
      return created as Entry<T>
    } catch (error) {
      return this.#lost(error, () => this.at(key) !== undefined)
    }
  }

  /** `preconditions`: as create. */
  async update(entry: Entry<T>, asked: T, preconditions?: readonly Precondition[]): Promise<Entry<T>> {
    const { value: added, made } = expected(entry.key, entry.rev, asked)
    const value = this.#revised(entry.value, added)
    assertReal(entry.key, value)
    try {
      const updated = await this.#store.update(entry.key, value as Json, entry.rev, preconditions)
      made()
      if (!this.#has(updated.rev)) await this.#reached(updated.rev)
      return updated as Entry<T>
    } catch (error) {
      return this.#lost(error, () => this.at(entry.key)?.rev !== entry.rev)
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
   * Read, apply, compare-and-set; reloaded and retried when somebody else wrote first. `next` gets what is there (nothing:
   * undefined) and returns what shall be there. Null deletes it; undefined, or the very value, leaves it as it is. It may
   * be called several times; what it throws ends the change. Returns what is there in the end. `preconditions`: as create; not for
   * a deletion.
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

  /** Somebody else was quicker, perhaps on another server: until that is seen here, a retry would be in vain. */
  async #lost(error: unknown, isSeen: () => boolean): Promise<never> {
    // What it was given may be of another kind, and is seen there: `moved`.
    if (isLost(error) && !(error instanceof PreconditionFailed)) await this.#seen(isSeen)
    throw error
  }

  /** Until what changed this record is seen here, for a moment at most: for whoever lost against it. */
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
