// images of remotes: what there is, and pulling it.
import type * as api from '../../../api/images/remote-images.ts'
import type { HandlersOf } from '../../handlers.ts'
import { imageKinds } from '../../images/kinds.ts'
import { beginPull, listOffers } from '../../remotes/image-pulls.ts'
import type { Services } from '../../services.ts'

export function remoteImages(services: Services): HandlersOf<typeof api> {
  const kinds = imageKinds(services)

  return {
    listRemoteImages: () => listOffers(services, 'image'),

    pullRemoteImage: ({ params: { namespace, remoteimage }, body, principal, now, requestKey }) =>
      beginPull(services, kinds.image, {
        kind: 'image',
        wanted: remoteimage,
        name: body.name,
        description: body.description,
        namespace,
        principal,
        now,
        requestKey,
      }),
  }
}
