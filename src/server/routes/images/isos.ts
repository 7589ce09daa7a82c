// Handlers of ISOs, which belong to the cluster.
import type * as api from '../../../api/images/isos.ts'
import type { Principal } from '../../../auth/principal.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import type { Caller } from '../../../rules/ownership.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { receiveImage, type UploadServices } from '../../images/uploads.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { newName } from './images.ts'

export function isos(services: KindServices & UploadServices & { readonly roles: Roles }): HandlersOf<typeof api> {
  const kind = imageKinds(services).iso
  const { store } = kind
  const by = (principal: Principal): Caller => callerOf(services.roles, principal)

  return {
    listIsos: ({ principal }) => store.listed(by(principal), services.roles.revFor(principal)),

    getIso: ({ params: { iso }, principal }) => store.view(store.existing(iso), by(principal)),

    async copyIso({ params: { namespace, iso }, body, principal, now, requestKey }) {
      const to = { name: newName(body), description: body.description }
      const caller = by(principal)
      const { entry, isRepeated } = await store.copy(iso, to, { namespace, caller, now, requestKey })
      return new Answer(202, store.view(entry, caller), isRepeated)
    },

    describeIso: async ({ params: { iso }, body: { description }, principal, now }) =>
      store.view(await store.describe(iso, description, by(principal), now), by(principal)),

    deleteIso: ({ params: { iso }, principal }) => store.remove(iso, by(principal)),

    downloadIso: ({ params: { iso } }) => store.download(iso),

    uploadIso: ({ params: { namespace }, upload, principal, now, requestKey }) =>
      receiveImage(services, kind, upload, { namespace, caller: by(principal), now, requestKey }),
  }
}
