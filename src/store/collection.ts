// One kind of record: typed reads from memory, typed writes to the store. A writer sees its own writes, because every
// write waits until the view has applied it.
import type { Entry, Json, Rev, Store } from './store.ts'
import type { View } from './view.ts'

export class Collection<T> {
  readonly prefix: string
  readonly view: View<T>
  readonly #store: Store

  constructor(store: Store, view: View<T>, prefix: string) {
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

  async create(scope: string, name: string, value: T): Promise<Entry<T>> {
    return this.#seen(await this.#store.create(this.key(scope, name), value as Json))
  }

  async update(entry: Entry<T>, value: T): Promise<Entry<T>> {
    return this.#seen(await this.#store.update(entry.key, value as Json, entry.rev))
  }

  async delete(entry: Entry<T>): Promise<Rev> {
    const rev = await this.#store.delete(entry.key, entry.rev)
    await this.view.reached(rev)
    return rev
  }

  async #seen(entry: Entry): Promise<Entry<T>> {
    await this.view.reached(entry.rev)
    return entry as Entry<T>
  }
}
