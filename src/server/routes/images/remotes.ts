// Handlers of remote images and ISOs: list and pull.
import type * as api from '../../../api/images/remotes.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remotes(services: BeginPullServices): HandlersOf<typeof api> {
  return {
    listRemoteImages: () => listOffers(services, 'image'),
    pullRemoteImage: ({ params, ...call }) => beginPull(services, 'image', params.remoteimage, { ...params, ...call }),
    listRemoteIsos: () => listOffers(services, 'iso'),
    pullRemoteIso: ({ params, ...call }) => beginPull(services, 'iso', params.remoteiso, { ...params, ...call }),
  }
}
