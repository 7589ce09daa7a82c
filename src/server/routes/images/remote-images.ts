// Handlers of remote images: list and pull.
import type * as api from '../../../api/images/remote-images.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteImages(
  services: KindServices & BeginPullServices & { readonly roles: Roles },
): HandlersOf<typeof api> {
  const kinds = imageKinds(services)
  return {
    listRemoteImages: () => listOffers(services, 'image'),

    pullRemoteImage({ params: { namespace, remoteimage: wanted }, body, principal, now, requestKey }) {
      const { name, description } = body
      const caller = callerOf(services.roles, principal)
      const request = { kind: 'image', wanted, name, description, namespace, caller, now, requestKey } as const
      return beginPull(services, kinds.image, request)
    },
  }
}
