// ISOs of remotes: what there is, and pulling it.
import type * as api from '../../../api/images/remote-isos.ts'
import type { HandlersOf } from '../../handlers.ts'
import { imageKinds } from '../../images/kinds.ts'
import { beginPull, listOffers } from '../../remotes/image-pulls.ts'
import type { Services } from '../../services.ts'

export function remoteIsos(services: Services): HandlersOf<typeof api> {
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
