// Handlers of remote ISOs: list and pull.
import type * as api from '../../../api/images/remote-isos.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type BeginPullServices, beginPull, listOffers } from '../../remotes/image-pulls.ts'

export function remoteIsos(
  services: KindServices & BeginPullServices & { readonly roles: Roles },
): HandlersOf<typeof api> {
  const kinds = imageKinds(services)
  return {
    listRemoteIsos: () => listOffers(services, 'iso'),

    pullRemoteIso({ params: { namespace, remoteiso: wanted }, body, principal, now, requestKey }) {
      const { name, description } = body
      const caller = callerOf(services.roles, principal)
      const request = { kind: 'iso', wanted, name, description, namespace, caller, now, requestKey } as const
      return beginPull(services, kinds.iso, request)
    },
  }
}
