// The end of a capture, in the two records that know of it: first the image or the push job, by one compare-and-set,
// then the VM. After an interruption the next caller sees that the first record no longer names the capture, and
// finishes the VM.

import type { Entry } from '../store.ts'
import type { Collections } from './collections.ts'
import type { CaptureForImage, ImageRecord, VmCapture, VmRecord } from './fleet-records.ts'
import { changePushJob, isFinished } from './push-jobs.ts'
import { changeVm } from './vms.ts'

type CaptureRecords = Pick<Collections, 'images' | 'pushJobs' | 'vms'>

/** Changes an image while this capture is in progress. Returns false if it is not, or no longer is. */
export async function changeCaptured(
  { images }: Pick<CaptureRecords, 'images'>,
  { id, image }: Pick<CaptureForImage, 'id' | 'image'>,
  change: (record: ImageRecord) => ImageRecord,
): Promise<boolean> {
  let isChanged = false
  await images.change(images.key('', image), (record) => {
    isChanged = record?.capture?.id === id
    return record && isChanged ? change(record) : undefined
  })
  return isChanged
}

export function withoutCapture(record: ImageRecord): ImageRecord {
  const { capture: _, progress: __, state: ___, errorMessage: ____, errorNamespace: _____, ...rest } = record
  return rest
}

/** How an image is changed when its capture fails. */
const afterFailure: Readonly<Record<CaptureForImage['kind'], Pick<ImageRecord, 'state'>>> = {
  save: { state: 'Failed' },
  // A failed commit leaves the image as it was.
  commit: {},
}

export async function failCapture(
  kept: CaptureRecords,
  namespace: string,
  capture: VmCapture,
  problem: string,
  at: string,
): Promise<boolean> {
  if (capture.kind !== 'push') return failImage(kept, capture, problem, at)
  const failed = { status: 'Failed', errorMessage: problem, finishedAt: at } as const
  return (await changePushJob(kept.pushJobs, kept.pushJobs.key(namespace, capture.job), () => failed)) !== undefined
}

export function failImage(
  kept: Pick<CaptureRecords, 'images'>,
  { id, image, kind }: Pick<CaptureForImage, 'id' | 'image' | 'kind'>,
  problem: string,
  at: string,
): Promise<boolean> {
  return changeCaptured(kept, { id, image }, (record) => ({
    ...withoutCapture(record),
    ...afterFailure[kind],
    errorMessage: problem,
    ...(record.capture && { errorNamespace: record.capture.vm.namespace }),
    updatedAt: at,
  }))
}

/** Whether the image or push job still waits for the capture. */
export function isWaitedFor({ images, pushJobs }: CaptureRecords, namespace: string, capture: VmCapture): boolean {
  if (capture.kind !== 'push') return images.get('', capture.image)?.value.capture?.id === capture.id
  const job = pushJobs.get(namespace, capture.job)?.value
  return job?.capture === capture.id && !isFinished(job)
}

/** Removes the capture from the VM's record. */
export async function dropCapture(
  kept: Pick<CaptureRecords, 'vms'>,
  { key, value }: Entry<VmRecord>,
  id: string,
): Promise<void> {
  await changeVm(kept, key, value.uid, (record) => {
    const { captures = [], ...rest } = record
    const left = captures.filter((capture) => capture.id !== id)
    if (left.length === captures.length) return undefined
    return left.length === 0 ? rest : { ...rest, captures: left }
  })
}
