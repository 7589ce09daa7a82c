// The order in which chunks are fetched: first those that readers wait for, then those that are likely to be read next,
// then the rest.

export class FetchOrder<T> {
  readonly #wanted = new Set<T>()
  readonly #soon = new Set<T>()
  readonly #rest: Set<T>

  constructor(items: Iterable<T>) {
    this.#rest = new Set(items)
  }

  get size(): number {
    return this.#wanted.size + this.#soon.size + this.#rest.size
  }

  /** Does nothing if the item was taken. */
  want(item: T): void {
    if (this.#soon.delete(item) || this.#rest.delete(item)) this.#wanted.add(item)
  }

  expect(item: T): void {
    if (this.#rest.delete(item)) this.#soon.add(item)
  }

  /** `soon` allows items that were expected but not wanted, `unasked` those that were neither. */
  take(may: { readonly soon: boolean; readonly unasked: boolean }): T | undefined {
    return (
      shift(this.#wanted) ?? (may.soon ? shift(this.#soon) : undefined) ?? (may.unasked ? shift(this.#rest) : undefined)
    )
  }
}

function shift<T>(items: Set<T>): T | undefined {
  const [first] = items
  if (first !== undefined) items.delete(first)
  return first
}
