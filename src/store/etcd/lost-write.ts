// Finds out whether a write with an unknown outcome was carried out. Each record names the operation that wrote it.
import { setTimeout as sleep } from 'node:timers/promises'
import { keyExists } from '../faults.ts'
import { type EtcdCalls, lookupOptions } from './calls.ts'
import { EtcdFailure } from './client.ts'

interface LostWrite {
  readonly key: string
  readonly op: string
  /** For updates and deletions, the revision that was to be replaced; for creates, any revision before the write. */
  readonly before: number
  readonly failure: EtcdFailure
}

const looks = 5
const lookEveryMs = 100

/** Returns the revision of the write. Throws if it was not carried out, or that cannot be told. */
export async function recogniseCreate(calls: EtcdCalls, { key, op, before, failure }: LostWrite): Promise<number> {
  const { layout } = calls
  // If the record cannot be read either, the outcome stays unknown.
  const giveUp = (): never => {
    throw failure
  }
  for (let look = 1; ; look++) {
    const found = await calls.find(key, undefined, lookupOptions).catch(giveUp)
    if (found && layout.isWrittenBy(op, found)) return found.modRevision
    // The record existed before the write. A delayed try may still succeed once that record is deleted.
    if (found && found.createRevision <= before) throw failure.settled ? keyExists(key) : failure
    // The record may have been created by this write and changed since.
    const first = found && (await calls.find(key, found.createRevision, lookupOptions).catch(giveUp))
    if (first && layout.isWrittenBy(op, first)) return first.modRevision
    if (!found && failure.settled) throw undone(failure)
    if (found || look >= looks) throw failure
    await sleep(lookEveryMs)
  }
}

export async function recogniseUpdate(calls: EtcdCalls, { key, op, before, failure }: LostWrite): Promise<number> {
  const found = await calls.find(key, undefined, lookupOptions).catch(() => undefined)
  if (found && calls.layout.isWrittenBy(op, found)) return found.modRevision
  throw found?.modRevision === before && failure.settled ? undone(failure) : failure
}

/** A deletion leaves no operation id. Only a record that still exists was certainly not deleted. */
export async function judgeDelete(calls: EtcdCalls, lost: Omit<LostWrite, 'op'>): Promise<EtcdFailure> {
  const { key, before, failure } = lost
  const found = failure.settled ? await calls.find(key, undefined, lookupOptions).catch(() => undefined) : undefined
  return found?.modRevision === before ? undone(failure) : failure
}

const undone = ({ message, code }: EtcdFailure): EtcdFailure => new EtcdFailure(message, code, false)
