// In which order the chunks of a disk are fetched: first what somebody waits for, then what is likely to be wanted next, then
// the rest as it lies. Pure.

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

  /** Before all others, in the order of asking. One that was taken stays taken. */
  want(item: T): void {
    if (this.#soon.delete(item) || this.#rest.delete(item)) this.#wanted.add(item)
  }

  /** After what is wanted. */
  expect(item: T): void {
    if (this.#rest.delete(item)) this.#soon.add(item)
  }

  /** `unasked`: also one that nobody waits for. */
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
