// The record of a push job, and how it changes. Once it has ended it never changes again, whoever is late to say what.
import type { PushJob } from '../api/push-jobs.ts'
import type { Collection } from './collection.ts'
import { type Entry, ignoreLost } from './store.ts'

export interface PushJobRecord {
  readonly name: string
  readonly namespace: string
  /** Of the VM. */
  readonly vm: string
  readonly vmUid: string
  /** The whole reference, in its normal form. */
  readonly image: string
  readonly owner: string
  /** The frozen state of the VM that is sent. */
  readonly capture: string
  readonly requestKey?: string
  readonly status: PushJob['status']
  readonly phase?: string
  readonly progress: PushJob['progress']
  readonly digest?: string
  readonly errorMessage?: string
  readonly startedAt: string
  readonly finishedAt?: string
}

export const nothingYet: PushJob['progress'] = { bytesTotal: 0, bytesDone: 0, bytesSkipped: 0, percent: 0 }

export const isOver = ({ finishedAt }: PushJobRecord): boolean => finishedAt !== undefined

/** Changes a job that is not over, until it succeeds. Undefined: it is over, or gone. */
export async function changePushJob(
  pushJobs: Collection<PushJobRecord>,
  key: string,
  change: (record: PushJobRecord) => Partial<PushJobRecord> | undefined,
): Promise<Entry<PushJobRecord> | undefined> {
  for (;;) {
    const entry = pushJobs.at(key)
    if (!entry || isOver(entry.value)) return undefined
    const changed = change(entry.value)
    if (!changed) return entry
    try {
      return await pushJobs.update(entry, { ...entry.value, ...changed })
    } catch (error) {
      ignoreLost(error)
    }
  }
}
