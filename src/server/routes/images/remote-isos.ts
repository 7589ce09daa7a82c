// Handlers of remote ISOs: list and pull.
import type * as api from '../../../api/images/remote-isos.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteIsos(services: BeginPullServices): HandlersOf<typeof api> {
  return {
    listRemoteIsos: () => listOffers(services, 'iso'),
    pullRemoteIso: ({ params, ...call }) => beginPull(services, 'iso', params.remoteiso, { ...params, ...call }),
  }
}
