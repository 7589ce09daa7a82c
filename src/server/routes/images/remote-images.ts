// images of remotes: what there is, and pulling it.
import type * as api from '../../../api/images/remote-images.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteImages(services: KindServices & BeginPullServices): HandlersOf<typeof api> {
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
