// Dry runs. The work runs up to its first write and stops there, so that the code that makes a change also decides
// whether it would be refused.
import { AsyncLocalStorage } from 'node:async_hooks'
import { StoreError } from './store.ts'

interface Rehearsed {
  readonly key: string
  /** The value that would be written; undefined for a deletion. */
  readonly value: unknown
}

/** Ends the work. Code that catches errors must rethrow this one. */
class RehearsalEnd extends Error {
  override readonly name = 'RehearsalEnd'
  readonly written: Rehearsed

  constructor(written: Rehearsed) {
    super('A dry run ends before its first write')
    this.written = written
  }
}

const rehearsing = new AsyncLocalStorage<true>()

/**
 * Returns the first write that the work would make, or undefined if it makes none. Throws what the work throws before.
 */
export async function rehearse(work: () => Promise<unknown>): Promise<Rehearsed | undefined> {
  try {
    await rehearsing.run(true, work)
    return undefined
  } catch (error) {
    if (error instanceof RehearsalEnd) return error.written
    throw error
  }
}

/** Whether this is a dry run, in which work must skip steps that only prepare its actual change. */
export const isRehearsal = (): boolean => rehearsing.getStore() === true

/** Call this before every write. `isTaken`: a record that would be created exists. */
export function assertReal(key: string, value: unknown, isTaken = false): void {
  if (!rehearsing.getStore()) return
  throw isTaken ? new StoreError('AlreadyExists', `${key} exists`) : new RehearsalEnd({ key, value })
}
