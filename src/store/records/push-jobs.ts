// The record of a push job, and how it changes. Once it has ended it never changes again, whoever is late to say what.

import type { PushFormat } from '../../api/records.ts'
import type { PushJob } from '../../api/vms/push-jobs.ts'
import type { Collection } from '../collection.ts'
import type { Entry } from '../store.ts'
import type { RecordMeta } from './record-meta.ts'

export interface PushJobRecord {
  readonly name: string
  readonly namespace: string
  /** Of the VM. */
  readonly vm: string
  readonly vmUid: string
  /** The whole reference, in its normal form. */
  readonly image: string
  readonly format?: PushFormat
  readonly owner: string
  /** The frozen state of the VM that is sent. */
  readonly capture: string
  readonly requestKey?: string
  readonly status: PushJob['status']
  readonly phase?: string
  readonly progress: PushJob['progress']
  /** Of its last report, as long as it is not over. */
  readonly waiting?: PushJob['waiting'] | undefined
  /** When the sending began, and what had been sent by then: where its rate is counted from. */
  readonly sending?: { readonly atMs: number; readonly bytes: number }
  readonly digest?: string
  readonly errorMessage?: string
  readonly startedAt: string
  readonly finishedAt?: string
  readonly meta?: RecordMeta
}

export const nothingYet: PushJob['progress'] = { bytesTotal: 0, bytesDone: 0, bytesSkipped: 0, percent: 0 }

/** What a report of the agent makes of a job that sends. */
export function sent(
  record: PushJobRecord,
  reported: PushJob['progress'],
  nowMs: number,
): Pick<PushJobRecord, 'progress' | 'sending'> {
  const bytes = reported.bytesDone - reported.bytesSkipped
  const { sending } = record
  // The count falls when an agent begins anew.
  if (sending === undefined || bytes < sending.bytes) return { progress: reported, sending: { atMs: nowMs, bytes } }
  const seconds = (nowMs - sending.atMs) / 1_000
  const bytesPerSecond = seconds < leastSeconds ? 0 : Math.floor((bytes - sending.bytes) / seconds)
  if (bytesPerSecond === 0) return { progress: reported, sending }
  // What it adds up to is not known while some of it is being packed.
  if (reported.bytesTotal === 0) return { progress: { ...reported, bytesPerSecond }, sending }
  const secondsLeft = Math.ceil(Math.max(0, reported.bytesTotal - reported.bytesDone) / bytesPerSecond)
  return { progress: { ...reported, bytesPerSecond, secondsLeft }, sending }
}

/** Less than that is no average. */
const leastSeconds = 1

export const isFinished = ({ finishedAt }: PushJobRecord): boolean => finishedAt !== undefined

/** Changes a job that is not over, until it succeeds. Undefined: it is over, or gone. */
export async function changePushJob(
  pushJobs: Collection<PushJobRecord>,
  key: string,
  change: (record: PushJobRecord) => Partial<PushJobRecord> | undefined,
): Promise<Entry<PushJobRecord> | undefined> {
  let isUnderWay = false
  const entry = await pushJobs.change(key, (record) => {
    isUnderWay = record !== undefined && !isFinished(record)
    const changed = record && isUnderWay ? change(record) : undefined
    return record && changed && { ...record, ...changed }
  })
  return isUnderWay ? entry : undefined
}
