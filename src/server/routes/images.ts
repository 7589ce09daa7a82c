// Images: which there are, and which VMs use them.
import { notFound } from '../../api/errors.ts'
import type * as api from '../../api/images.ts'
import type { Image } from '../../api/images.ts'
import type { ImageRecord } from '../../store/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import { type HandlersOf, listing } from '../handlers.ts'
import type { Services } from '../services.ts'

export function images({ collections, imageUses }: Services): HandlersOf<typeof api> {
  const shown = ({ value, rev }: Entry<ImageRecord>): Image => ({
    name: value.name,
    description: value.description,
    type: value.architecture,
    size: `${Math.ceil(value.sizeBytes / 2 ** 30)}G`,
    state: 'Ready',
    owner: value.owner,
    source: 'built-in',
    sourceType: 'local',
    usedBy: imageUses.of(value.name),
    lastUpdatedTimestamp: value.updatedAt,
    resourceVersion: rev,
  })
  return {
    listImages: () => ({ ...listing(collections.images, '', shown), isDerived: true }),
    getImage: ({ params: { namespace, image } }) => {
      const entry = collections.images.get('', image)
      if (!entry) throw notFound('images', image, `svc3 image list -n ${namespace} shows what is there`)
      return shown(entry)
    },
  }
}
