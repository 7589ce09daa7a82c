// Pins in a VM's record what its disk is made from, because an image's name may mean other content later.
import { ApiError, notFound } from '../../api/errors.ts'
import type { ContentStore } from '../../images/content/content.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { ImageRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { forgetVm } from '../../store/records/vms.ts'
import type { Entry, Store } from '../../store/store.ts'
import { openImageContents } from '../images/contents.ts'

export interface BaseImageServices {
  readonly collections: Collections
  readonly content: ContentStore
  readonly store: Store
}

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

/**
 * Once a new VM's record is written: the image is looked at again, in the store itself. Whoever commits into it locks it
 * first and then looks for VMs, so one of the two always sees the other. Takes the VM back where it may not be.
 */
export async function assertStill(services: BaseImageServices, { key, value }: Entry<VmRecord>): Promise<void> {
  const { collections, content, store } = services
  const { shape, uid, imageContent, imageReference } = value
  if (imageReference !== undefined) return
  const image = (await store.get(collections.images.key('', shape.image)))?.value as ImageRecord | undefined
  const isLocked = image?.capture !== undefined && shape.architecture === 'amd64'
  const isSame = image !== undefined && image.content === imageContent
  // Replaced meanwhile: the older content is as good, where all of it is there still.
  const isThere = isSame || (image !== undefined && (await isHeld(imageContent)))
  if (isThere && !isLocked) return
  await forgetVm(collections, key, uid)
  if (!image) throw notFound('images', shape.image)
  const what = isLocked ? 'has a commit in progress' : 'was replaced during the deployment'
  throw new ApiError('Conflict', `Image ${shape.image} ${what}`, {
    kind: 'images',
    name: shape.image,
    hint: `Deploy again when it is Ready: svc3 image list ${shape.image} -n ${value.namespace}`,
  })

  async function isHeld(digest: string | undefined): Promise<boolean> {
    if (digest === undefined) return true
    return openImageContents(content)
      .hold(digest)
      .catch(async (error: unknown) => {
        await forgetVm(collections, key, uid)
        throw error
      })
  }
}
