// The record of a push job. Once the job has finished, its record never changes again.

import type { PushJob } from '../../api/vms/push-jobs.ts'
import type { Collection } from '../collection.ts'
import type { Entry } from '../store.ts'
import type { RecordMeta } from './record-meta.ts'

/** `image` is the full reference in normal form. */
export interface PushJobRecord extends Readonly<Omit<PushJob, 'waiting' | 'expiresAt' | 'resourceVersion'>> {
  readonly vmUid: string
  /** The id of the capture that is pushed. */
  readonly capture: string
  readonly requestKey?: string
  /** From the last report of an unfinished job. */
  readonly waiting?: PushJob['waiting'] | undefined
  /** When sending began and how much had been sent by then, for the transfer rate. */
  readonly sending?: { readonly atMs: number; readonly bytes: number }
  readonly meta?: RecordMeta
}

export const nothingYet: PushJob['progress'] = { bytesTotal: 0, bytesDone: 0, bytesSkipped: 0, percent: 0 }

/** Applies a progress report of the agent. */
export function sent(
  record: PushJobRecord,
  reported: PushJob['progress'],
  nowMs: number,
): Pick<PushJobRecord, 'progress' | 'sending'> {
  const bytes = reported.bytesDone - reported.bytesSkipped
  const { sending } = record
  // The count restarts when the agent does.
  if (sending === undefined || bytes < sending.bytes) return { progress: reported, sending: { atMs: nowMs, bytes } }
  const seconds = (nowMs - sending.atMs) / 1_000
  const bytesPerSecond = seconds < leastSeconds ? 0 : Math.floor((bytes - sending.bytes) / seconds)
  if (bytesPerSecond === 0) return { progress: reported, sending }
  // The total is unknown while parts are still being packed.
  if (reported.bytesTotal === 0) return { progress: { ...reported, bytesPerSecond }, sending }
  const secondsLeft = Math.ceil(Math.max(0, reported.bytesTotal - reported.bytesDone) / bytesPerSecond)
  return { progress: { ...reported, bytesPerSecond, secondsLeft }, sending }
}

/** A shorter time gives no useful average. */
const leastSeconds = 1

export const isFinished = ({ finishedAt }: PushJobRecord): boolean => finishedAt !== undefined

/** Changes an unfinished job, retrying lost races. Returns undefined if the job has finished or was deleted. */
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
