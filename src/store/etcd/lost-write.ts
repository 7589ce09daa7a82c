// Whether a write whose answer was lost, or was a refusal that proves nothing, has happened: its record names the write that
// made it.
import { setTimeout as sleep } from 'node:timers/promises'
import { keyExists } from '../faults.ts'
import { type EtcdCalls, looking } from './calls.ts'
import { EtcdFailure } from './client.ts'

interface LostWrite {
  readonly key: string
  readonly op: string
  /** Of what was to be replaced; of a create, any from before. */
  readonly before: number
  readonly failure: EtcdFailure
}

const looks = 5
const lookEveryMs = 100

/** Its revision; throws when it cannot be told, or was not carried out. */
export async function recogniseCreate(calls: EtcdCalls, { key, op, before, failure }: LostWrite): Promise<number> {
  const { layout } = calls
  // When nobody answers now either, it stays open.
  const giveUp = (): never => {
    throw failure
  }
  for (let look = 1; ; look++) {
    const found = await calls.find(key, undefined, looking).catch(giveUp)
    if (found && layout.isWrittenBy(op, found)) return found.modRevision
    // What was there all along refuses it now; a try that is still under way may be carried out once that is deleted.
    if (found && found.createRevision <= before) throw failure.settled ? keyExists(key) : failure
    // Created by us, and changed by somebody since?
    const first = found && (await calls.find(key, found.createRevision, looking).catch(giveUp))
    if (first && layout.isWrittenBy(op, first)) return first.modRevision
    if (!found && failure.settled) throw undone(failure)
    if (found || look >= looks) throw failure
    await sleep(lookEveryMs)
  }
}

/** As `recogniseCreate`, for an update. */
export async function recogniseUpdate(calls: EtcdCalls, { key, op, before, failure }: LostWrite): Promise<number> {
  const found = await calls.find(key, undefined, looking).catch(() => undefined)
  if (found && calls.layout.isWrittenBy(op, found)) return found.modRevision
  throw found?.modRevision === before && failure.settled ? undone(failure) : failure
}

/** A deletion leaves nothing to recognise it by; only what is still there was surely not deleted. */
export async function judgeDelete(calls: EtcdCalls, lost: Omit<LostWrite, 'op'>): Promise<EtcdFailure> {
  const { key, before, failure } = lost
  const found = failure.settled ? await calls.find(key, undefined, looking).catch(() => undefined) : undefined
  return found?.modRevision === before ? undone(failure) : failure
}

const undone = ({ message, code }: EtcdFailure): EtcdFailure => new EtcdFailure(message, code, false)
