// Handlers of remote images and ISOs: list and pull.

import type * as imagesApi from '../../../api/images/remote-images.ts'
import type { pullRemoteImage } from '../../../api/images/remote-images.ts'
import type * as isosApi from '../../../api/images/remote-isos.ts'
import type { pullRemoteIso } from '../../../api/images/remote-isos.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { Call, HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'
import type { RemoteKind } from '../../remotes/source.ts'

type PullCall = Call<typeof pullRemoteImage> | Call<typeof pullRemoteIso>

export function remotes(
  services: KindServices & BeginPullServices & { readonly roles: Roles },
): HandlersOf<typeof imagesApi & typeof isosApi> {
  const kinds = imageKinds(services)
  const pull = (kind: RemoteKind, wanted: string, { params, body, principal, now, requestKey }: PullCall) => {
    const context = { namespace: params.namespace, caller: callerOf(services.roles, principal), now, requestKey }
    return beginPull(services, kinds[kind], { kind, wanted, ...body, context })
  }
  return {
    listRemoteImages: () => listOffers(services, 'image'),
    listRemoteIsos: () => listOffers(services, 'iso'),
    pullRemoteImage: (call) => pull('image', call.params.remoteimage, call),
    pullRemoteIso: (call) => pull('iso', call.params.remoteiso, call),
  }
}
