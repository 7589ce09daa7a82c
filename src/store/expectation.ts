// Compare-and-set on behalf of an API caller (If-Match). Within `expecting`, the first change of the given record is
// made only at the given revision, together with what the caller adds to it. Handlers that retry after a lost race need
// not know about this.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Rev } from './store.ts'

interface Expectation {
  readonly key: string
  /** Undefined: any revision, or not created yet. */
  readonly rev?: Rev | undefined
  readonly refusal: () => Error
  readonly adding?: ((value: unknown) => unknown) | undefined
  isOver: boolean
}

const current = new AsyncLocalStorage<Expectation>()

export async function expecting<T>(requested: Omit<Expectation, 'isOver'>, work: () => Promise<T>): Promise<T> {
  const expectation: Expectation = { ...requested, isOver: false }
  try {
    return await current.run(expectation, work)
  } finally {
    expectation.isOver = true
  }
}

interface Expected<T> {
  readonly value: T
  /** Call this once the value is written. Later changes are neither checked nor added to. */
  made(): void
}

/** Call this before each change of a record. `rev` is undefined for a record that is created. */
export function expected<T>(key: string, rev: Rev | undefined, value: T): Expected<T> {
  const expectation = current.getStore()
  if (!expectation || expectation.isOver || expectation.key !== key) return { value, made: () => {} }
  if (expectation.rev !== undefined && expectation.rev !== rev) throw expectation.refusal()
  return {
    value: expectation.adding && value !== undefined ? (expectation.adding(value) as T) : value,
    made: () => {
      expectation.isOver = true
    },
  }
}
