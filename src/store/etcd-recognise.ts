// Whether a create whose answer was lost has happened: its record names the write that made it.
import { setTimeout as sleep } from 'node:timers/promises'
import { type EtcdCalls, looking } from './etcd-calls.ts'
import type { EtcdFailure } from './etcd-client.ts'
import { alreadyExists } from './faults.ts'

export interface LostCreate {
  readonly key: string
  readonly op: string
  /** A revision from before. */
  readonly before: number
  readonly failure: EtcdFailure
}

const looks = 5
const lookEveryMs = 100

/** Its revision; throws when it cannot be told, or was not it. */
export async function recogniseCreate(calls: EtcdCalls, { key, op, before, failure }: LostCreate): Promise<number> {
  const { layout } = calls
  // When nobody answers now either, it stays open.
  const giveUp = (): never => {
    throw failure
  }
  for (let look = 1; ; look++) {
    const found = await calls.find(key, undefined, looking).catch(giveUp)
    if (found && layout.isWrittenBy(op, found)) return found.modRevision
    if (found && found.createRevision <= before) throw alreadyExists(key)
    // Created by us, and changed by somebody since?
    const first = found && (await calls.find(key, found.createRevision, looking).catch(giveUp))
    if (first && layout.isWrittenBy(op, first)) return first.modRevision
    if (found || look >= looks) throw failure
    await sleep(lookEveryMs)
  }
}
