// Handlers of remote images: list and pull.
import type * as api from '../../../api/images/remote-images.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteImages(services: BeginPullServices): HandlersOf<typeof api> {
  return {
    listRemoteImages: () => listOffers(services, 'image'),
    pullRemoteImage: ({ params, ...call }) => beginPull(services, 'image', params.remoteimage, { ...params, ...call }),
  }
}
