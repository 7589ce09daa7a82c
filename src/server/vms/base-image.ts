// Pins the content of an image in a VM's record, because the image may get other content later.
import type { ImageRecord, VmRecord } from '../../store/records/fleet-records.ts'

export const contentNow = (image: ImageRecord | undefined): Pick<VmRecord, 'imageContent' | 'imageRecipe'> => ({
  ...(image?.content !== undefined && { imageContent: image.content }),
  ...(image?.content === undefined && image?.recipe !== undefined && { imageRecipe: image.recipe }),
})

/** A new disk starts from the present content of the image. Without the image, the old pin stays. */
export function pinnedAnew(record: VmRecord, image: ImageRecord | undefined): VmRecord {
  if (!image) return record
  const { imageContent: _, imageRecipe: __, ...rest } = record
  return { ...rest, ...contentNow(image) }
}
