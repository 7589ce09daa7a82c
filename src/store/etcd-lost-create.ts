// A create whose answer was lost: it is looked for by its operation id; where it is not there, it is sent once more, by the
// same id, and the history of the key then says whether both were carried out, with somebody's deletion in between.
import { setTimeout as sleep } from 'node:timers/promises'
import { type EtcdCalls, looking, once, repeatable } from './etcd-calls.ts'
import { EtcdFailure } from './etcd-client.ts'
import { encodeDelete } from './etcd-protocol.ts'
import { alreadyExists } from './faults.ts'

export interface LostCreate {
  readonly key: string
  readonly op: string
  readonly request: Buffer
  /** How far the watch was before the first try. */
  readonly before: number
  readonly failure: EtcdFailure
  /** Revisions at which the key was written, after `before` and before this one; throws when nobody can tell any more. */
  putsBefore(revision: number): Promise<readonly number[]>
}

const looks = 5
const lookEveryMs = 100
const moreTries = 2

/** The revision that it was made at; throws `failure` when it cannot be told whether it was. */
export async function recoverCreate(calls: EtcdCalls, lost: LostCreate): Promise<number> {
  const { key, request, failure } = lost
  for (let tries = 0; ; tries++) {
    const found = await recognise(calls, lost)
    if (found !== undefined) return found
    if (tries === moreTries) throw failure
    const answer = await calls.txn(request, once).catch((error: unknown) => {
      if (error instanceof EtcdFailure && error.perhaps) return undefined
      throw failure
    })
    // It has come after all, or somebody else was quicker: the next look tells.
    if (!answer?.txn.succeeded) continue
    const { revision } = answer.txn.header
    const first = await earlier(calls, lost, revision)
    if (first === undefined) return revision
    // It had been made, and deleted by somebody who saw it: that is how it stays.
    await calls.txn(encodeDelete(calls.layout.key(key), revision), repeatable).catch(() => {
      throw failure
    })
    return first
  }
}

async function earlier(calls: EtcdCalls, lost: LostCreate, revision: number): Promise<number | undefined> {
  try {
    for (const put of await lost.putsBefore(revision)) {
      const written = await calls.find(lost.key, put)
      if (written && calls.layout.isWrittenBy(lost.op, written)) return put
    }
    return undefined
  } catch {
    throw lost.failure
  }
}

/** The revision at which it is there; undefined where nothing is. */
async function recognise(calls: EtcdCalls, { key, op, before, failure }: LostCreate): Promise<number | undefined> {
  // When nobody answers now either, it stays open.
  const giveUp = (): never => {
    throw failure
  }
  for (let look = 1; look <= looks; look++) {
    const found = await calls.find(key, undefined, looking).catch(giveUp)
    if (found && calls.layout.isWrittenBy(op, found)) return found.modRevision
    if (found && found.createRevision <= before) throw alreadyExists(key)
    // Created by us, and changed by somebody since?
    const first = found && (await calls.find(key, found.createRevision, looking).catch(giveUp))
    if (first && calls.layout.isWrittenBy(op, first)) return first.modRevision
    if (found) throw failure
    await sleep(lookEveryMs)
  }
  return undefined
}
