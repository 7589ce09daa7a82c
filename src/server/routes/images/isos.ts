// Handlers of ISOs, which belong to the cluster: copy, upload, describe, download, delete.
import type * as api from '../../../api/images/isos.ts'
import { displayName } from '../../../auth/principal.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { receiveImage, type UploadServices } from '../../images/uploads.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { newName } from './images.ts'

const noun = 'isos'

export function isos(services: KindServices & UploadServices): HandlersOf<typeof api> {
  const { store, take } = imageKinds(services).iso

  return {
    listIsos: () => store.listed(),

    getIso: ({ params: { iso } }) => store.shown(store.existing(iso)),

    async copyIso({ params: { namespace, iso }, body, principal, now, requestKey }) {
      const to = { name: newName(body), description: body.description }
      const owner = displayName(principal)
      const { entry, isRepeated } = await store.copy(iso, to, { namespace, owner, now, requestKey })
      return new Answer(202, store.shown(entry), isRepeated)
    },

    describeIso: async ({ params: { iso }, body: { description }, now }) =>
      store.shown(await store.describe(iso, description, now)),

    deleteIso: ({ params: { iso } }) => store.remove(iso),

    downloadIso: ({ params: { iso } }) => store.download(iso),

    uploadIso: ({ params: { namespace }, upload, principal, now, requestKey }) =>
      receiveImage(services, {
        store,
        upload,
        noun,
        asked: { namespace, owner: displayName(principal), now, requestKey },
        take,
      }),
  }
}
