// A dry run: work that goes up to its first write and no further. Whatever would refuse it has then been asked, by the
// same code that would make the change.
import { AsyncLocalStorage } from 'node:async_hooks'
import { StoreError } from './store.ts'

interface Rehearsed {
  readonly key: string
  /** What would be written; undefined for a deletion. */
  readonly value: unknown
}

/** Ends the work. Whoever catches errors lets it pass: it is none of theirs. */
class RehearsalEnd extends Error {
  override readonly name = 'RehearsalEnd'
  readonly written: Rehearsed

  constructor(written: Rehearsed) {
    super('A dry run ends before its first write')
    this.written = written
  }
}

const rehearsing = new AsyncLocalStorage<true>()

/** The first write that the work would make; undefined when it would make none. Throws what the work throws before. */
export async function rehearse(work: () => Promise<unknown>): Promise<Rehearsed | undefined> {
  try {
    await rehearsing.run(true, work)
    return undefined
  } catch (error) {
    if (error instanceof RehearsalEnd) return error.written
    throw error
  }
}

/** For work that writes elsewhere first: it is left out. */
export const isRehearsal = (): boolean => rehearsing.getStore() === true

/** Before every write. `isTaken`: a record that is to be created is there already. */
export function assertReal(key: string, value: unknown, isTaken = false): void {
  if (!rehearsing.getStore()) return
  throw isTaken ? new StoreError('AlreadyExists', `${key} exists`) : new RehearsalEnd({ key, value })
}
