// Compare-and-set as a caller asks for it: whatever is done within, the first change of that record is made only while it
// is at that revision, and with what the caller adds to it in the same write. Handlers that look again after a lost race
// need not know.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Rev } from './store.ts'

interface Expectation {
  readonly key: string
  /** Undefined: at any, or not there yet. */
  readonly rev?: Rev | undefined
  readonly refusal: () => Error
  /** What the record is with what the caller adds to it. */
  readonly adding?: ((value: unknown) => unknown) | undefined
  isOver: boolean
}

const current = new AsyncLocalStorage<Expectation>()

export async function expecting<T>(asked: Omit<Expectation, 'isOver'>, work: () => Promise<T>): Promise<T> {
  const expectation: Expectation = { ...asked, isOver: false }
  try {
    return await current.run(expectation, work)
  } finally {
    expectation.isOver = true
  }
}

interface Expected<T> {
  /** What to write. */
  readonly value: T
  /** To be called when it is written: later changes are not the caller's concern. */
  made(): void
}

/** Before a change of a record; `rev` is undefined for one that is created. */
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
