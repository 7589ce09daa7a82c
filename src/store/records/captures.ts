// The end of a capture, in the two records that know of it: first the image or the push job, by one compare-and-set, then
// the VM. Cut off in between, whoever comes next finds that the first has it no more, and does the rest.

import type { Entry } from '../store.ts'
import type { Collections } from './collections.ts'
import type { CaptureForImage, ImageRecord, VmCapture, VmRecord } from './fleet-records.ts'
import { changePushJob, isFinished } from './push-jobs.ts'
import { changeVm } from './vms.ts'

type Kept = Pick<Collections, 'images' | 'pushJobs' | 'vms'>

/** Changes an image while this capture is on its way into it. False: it is not, or not any more. */
export async function changeCaptured(
  { images }: Pick<Kept, 'images'>,
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

/** As it is when nothing is on its way into it. */
export function withoutCapture(record: ImageRecord): ImageRecord {
  const { capture: _, progress: __, state: ___, errorMessage: ____, errorNamespace: _____, ...rest } = record
  return rest
}

/** What becomes of an image when what was on its way into it does not come. */
const afterFailure: Readonly<Record<CaptureForImage['kind'], Pick<ImageRecord, 'state'>>> = {
  save: { state: 'Failed' },
  // It is as it was.
  commit: {},
}

/** `namespace` is that of the VM. */
export async function failCapture(
  kept: Kept,
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
  kept: Pick<Kept, 'images'>,
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

/** Something waits for it still. */
export function isWaitedFor({ images, pushJobs }: Kept, namespace: string, capture: VmCapture): boolean {
  if (capture.kind !== 'push') return images.get('', capture.image)?.value.capture?.id === capture.id
  const job = pushJobs.get(namespace, capture.job)?.value
  return job?.capture === capture.id && !isFinished(job)
}

/** The VM's record names it no more. */
export async function dropCapture(kept: Pick<Kept, 'vms'>, { key, value }: Entry<VmRecord>, id: string): Promise<void> {
  await changeVm(kept, key, value.uid, (record) => {
    const { captures = [], ...rest } = record
    const left = captures.filter((capture) => capture.id !== id)
    if (left.length === captures.length) return undefined
    return left.length === 0 ? rest : { ...rest, captures: left }
  })
}
