// One kind of record: typed reads from memory, typed writes to the store. A writer sees its own writes, because every
// write waits until the view has applied it; and one that lost sees what won, so that looking again helps.
import { assertExpected } from './expectation.ts'
import { compareRevs, type Entry, type Json, type Rev, type Store, StoreError, type StoreFault } from './store.ts'
import type { View } from './view.ts'

/** A view that does not follow is a fault; whoever waits for it is told. */
const patienceMs = 10_000
/** What somebody else wrote comes within milliseconds; whoever lost is not held up for longer than this. */
const lostMs = 1_000
const lostFaults: ReadonlySet<StoreFault> = new Set(['AlreadyExists', 'Conflict', 'NotFound'])

/** What the records of one kind need of a store. */
export type KindStore = Pick<Store, 'list' | 'watch' | 'create' | 'update' | 'delete'>

export class Collection<T> {
  readonly prefix: string
  readonly view: View<T>
  readonly #store: KindStore

  constructor(store: KindStore, view: View<T>, prefix: string) {
    this.#store = store
    this.view = view
    this.prefix = prefix
  }

  /** `/prefix/scope/name`, or `/prefix/name` in the whole cluster (scope ''). A name cannot break out of its place. */
  key(scope: string, name: string): string {
    const place = scope === '' ? this.prefix : `${this.prefix}${encodeURIComponent(scope)}/`
    return place + encodeURIComponent(name)
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

  /** The changes of a scope, or all, after a revision. */
  watch(scope: string, after: Rev, signal: AbortSignal): ReturnType<Store['watch']> {
    return this.#store.watch(scope === '' ? this.prefix : `${this.prefix}${encodeURIComponent(scope)}/`, after, signal)
  }

  async create(scope: string, name: string, value: T): Promise<Entry<T>> {
    const key = this.key(scope, name)
    try {
      const created = await this.#store.create(key, value as Json)
      if (!this.#has(created.rev)) await this.#reached(created.rev)
      return created as Entry<T>
    } catch (error) {
      return this.#lost(error, () => this.at(key) !== undefined)
    }
  }

  async update(entry: Entry<T>, value: T): Promise<Entry<T>> {
    const made = assertExpected(entry.key, entry.rev)
    try {
      const updated = await this.#store.update(entry.key, value as Json, entry.rev)
      made()
      if (!this.#has(updated.rev)) await this.#reached(updated.rev)
      return updated as Entry<T>
    } catch (error) {
      return this.#lost(error, () => this.at(entry.key)?.rev !== entry.rev)
    }
  }

  async delete(entry: Entry<T>): Promise<Rev> {
    try {
      const rev = await this.#store.delete(entry.key, entry.rev)
      if (!this.#has(rev)) await this.#reached(rev)
      return rev
    } catch (error) {
      return this.#lost(error, () => this.at(entry.key)?.rev !== entry.rev)
    }
  }

  /** Somebody else was quicker, perhaps on another server: until that is seen here, looking again would be in vain. */
  async #lost(error: unknown, isSeen: () => boolean): Promise<never> {
    const isLost = error instanceof StoreError && lostFaults.has(error.fault)
    if (isLost && !isSeen())
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          unsubscribe()
          resolve()
        }
        const unsubscribe = this.view.subscribe(() => isSeen() && done())
        const timer = setTimeout(done, lostMs)
      })
    throw error
  }

  #has(rev: Rev): boolean {
    return compareRevs(this.view.rev, rev) >= 0
  }

  async #reached(rev: Rev): Promise<void> {
    await this.view.reachedWithin(rev, patienceMs).catch((cause: unknown) => {
      throw new StoreError('Unknown', `the change of ${this.prefix} was written but is not seen here yet`, { cause })
    })
  }
}
