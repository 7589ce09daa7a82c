// Compare-and-set as a caller asks for it: whatever is done within, the first change of that record is made only while it
// is at that revision. Handlers that look again after a lost race need not know.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Rev } from './store.ts'

interface Expectation {
  readonly key: string
  readonly rev: Rev
  readonly refusal: () => Error
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

/** Before a change of a record. Returns what to say when it is made: later changes are not the caller's concern. */
export function assertExpected(key: string, rev: Rev): () => void {
  const expectation = current.getStore()
  if (!expectation || expectation.isOver || expectation.key !== key) return () => {}
  if (expectation.rev !== rev) throw expectation.refusal()
  return () => {
    expectation.isOver = true
  }
}
