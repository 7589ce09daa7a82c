// The end of a capture, in the two records that know of it: first the image, by one compare-and-set, then the VM. Cut off
// in between, whoever comes next finds that the image has it no more, and does the rest.
import type { Collections } from './collections.ts'
import type { ImageRecord, VmCapture, VmRecord } from './fleet-records.ts'
import { type Entry, ignoreLost } from './store.ts'
import { changeVm } from './vms.ts'

type Kept = Pick<Collections, 'images' | 'vms'>

/** Changes an image while this capture is on its way into it. False: it is not, or not any more. */
export async function changeCaptured(
  { images }: Pick<Kept, 'images'>,
  { id, image }: Pick<VmCapture, 'id' | 'image'>,
  change: (record: ImageRecord) => ImageRecord,
): Promise<boolean> {
  for (;;) {
    const entry = images.get('', image)
    if (entry?.value.capture?.id !== id) return false
    try {
      await images.update(entry, change(entry.value))
      return true
    } catch (error) {
      ignoreLost(error)
    }
  }
}

/** As it is when nothing is on its way into it. */
export function withoutCapture(record: ImageRecord): ImageRecord {
  const { capture: _, progress: __, state: ___, errorMessage: ____, ...rest } = record
  return rest
}

/** What becomes of an image when what was on its way into it does not come. */
const afterFailure: Readonly<Record<VmCapture['kind'], Pick<ImageRecord, 'state'>>> = {
  save: { state: 'Failed' },
  // It is as it was.
  commit: {},
}

export function failCaptured(
  kept: Kept,
  { id, image, kind }: Pick<VmCapture, 'id' | 'image' | 'kind'>,
  problem: string,
  at: string,
): Promise<boolean> {
  return changeCaptured(kept, { id, image }, (record) => ({
    ...withoutCapture(record),
    ...afterFailure[kind],
    errorMessage: problem,
    updatedAt: at,
  }))
}

/** The VM's record names it no more. */
export async function dropCapture(kept: Kept, { key, value }: Entry<VmRecord>, id: string): Promise<void> {
  await changeVm(kept, key, value.uid, (record) => {
    const { captures = [], ...rest } = record
    const left = captures.filter((capture) => capture.id !== id)
    if (left.length === captures.length) return undefined
    return left.length === 0 ? rest : { ...rest, captures: left }
  })
}
