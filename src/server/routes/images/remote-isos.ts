// ISOs of remotes: what there is, and pulling it.
import type * as api from '../../../api/images/remote-isos.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteIsos(services: KindServices & BeginPullServices): HandlersOf<typeof api> {
  const kinds = imageKinds(services)

  return {
    listRemoteIsos: () => listOffers(services, 'iso'),

    pullRemoteIso: ({ params: { namespace, remoteiso }, body, principal, now, requestKey }) =>
      beginPull(services, kinds.iso, {
        kind: 'iso',
        wanted: remoteiso,
        name: body.name,
        description: body.description,
        namespace,
        principal,
        now,
        requestKey,
      }),
  }
}
