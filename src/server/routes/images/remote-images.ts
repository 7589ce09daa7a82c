// Images and ISOs of remotes: what there is, and pulling it.
import type * as api from '../../../api/images/remote-images.ts'
import type * as isoApi from '../../../api/images/remote-isos.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

/** Nothing else of a body may become a part of the request. */
const pick = ({ name, description }: { readonly name?: string; readonly description?: string }) => ({
  name,
  description,
})

type RemoteHandlers = HandlersOf<typeof api> & HandlersOf<typeof isoApi>

export function remoteImages(services: KindServices & BeginPullServices): RemoteHandlers {
  const kinds = imageKinds(services)

  return {
    listRemoteImages: () => listOffers(services, 'image'),
    listRemoteIsos: () => listOffers(services, 'iso'),

    pullRemoteImage: ({ params: { namespace, remoteimage: wanted }, body, principal, now, requestKey }) =>
      beginPull(services, kinds.image, { ...pick(body), kind: 'image', wanted, namespace, principal, now, requestKey }),

    pullRemoteIso: ({ params: { namespace, remoteiso: wanted }, body, principal, now, requestKey }) =>
      beginPull(services, kinds.iso, { ...pick(body), kind: 'iso', wanted, namespace, principal, now, requestKey }),
  }
}
