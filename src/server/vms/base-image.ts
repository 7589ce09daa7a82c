// Pins in a VM's record what its disk is made from, because an image's name may mean other content later.
import type { ImageRecord, VmRecord } from '../../store/records/fleet-records.ts'

/** What an image is made of now. */
export const contentNow = (image: ImageRecord | undefined): Pick<VmRecord, 'imageContent' | 'imageRecipe'> => ({
  ...(image?.content !== undefined && { imageContent: image.content }),
  ...(image?.content === undefined && image?.recipe !== undefined && { imageRecipe: image.recipe }),
})

/** A new disk begins with what the image is now. One that is gone changes nothing. */
export function pinnedAnew(record: VmRecord, image: ImageRecord | undefined): VmRecord {
  if (!image) return record
  const { imageContent: _, imageRecipe: __, ...rest } = record
  return { ...rest, ...contentNow(image) }
}
