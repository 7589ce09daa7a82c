// Handlers of images, which belong to the cluster: create empty, copy, upload, describe, download, delete.
import { badRequest } from '../../../api/errors.ts'
import type { CopyInput } from '../../../api/images/image-operations.ts'
import type * as api from '../../../api/images/images.ts'
import { displayName } from '../../../auth/principal.ts'
import { diskSizeRule, parseDiskSize } from '../../../rules/sizes.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { problemsOf, receiveImage, type UploadServices } from '../../images/uploads.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const noun = 'images'

export function images(services: KindServices & UploadServices): HandlersOf<typeof api> {
  const { store, contents, take } = imageKinds(services).image

  return {
    listImages: () => store.listed(),

    getImage: ({ params: { image } }) => store.shown(store.existing(image)),

    async generateImage({
      params: { namespace },
      body: { name, size, firmware, os, description },
      principal,
      now,
      requestKey,
    }) {
      const sizeBytes = parseDiskSize(size)
      const message = `size "${size}" is not ${diskSizeRule}`
      const sizeProblems = sizeBytes === undefined ? [{ field: 'size', reason: 'FieldValueInvalid', message }] : []
      const bootProblems = problemsOf({ ...(firmware && { firmware }), ...(os && { os }) })
      store.refuse([...store.nameProblems(name), ...sizeProblems, ...bootProblems], name, requestKey)
      const architecture = 'amd64'
      const empty = await contents.empty(architecture, sizeBytes ?? 0, { firmware, os })
      const source = { source: 'generated', sourceType: 'generated' } as const
      const { entry, isRepeated } = await store.create(
        { name, description: description ?? '', architecture, ...(os && { os }), ...empty, ...source },
        { namespace, owner: displayName(principal), now, requestKey },
      )
      return new Answer(202, store.shown(entry), isRepeated)
    },

    async copyImage({ params: { namespace, image }, body, principal, now, requestKey }) {
      const to = { name: newName(body), description: body.description }
      const owner = displayName(principal)
      const { entry, isRepeated } = await store.copy(image, to, { namespace, owner, now, requestKey })
      return new Answer(202, store.shown(entry), isRepeated)
    },

    describeImage: async ({ params: { image }, body: { description }, now }) =>
      store.shown(await store.describe(image, description, now)),

    deleteImage: ({ params: { image } }) => store.remove(image),

    downloadImage: ({ params: { image }, query: { format } }) => store.download(image, format),

    uploadImage: ({ params: { namespace }, upload, principal, now, requestKey }) =>
      receiveImage(services, {
        store,
        upload,
        noun,
        asked: { namespace, owner: displayName(principal), now, requestKey },
        take,
      }),
  }
}

/** Clients of the original service call it `newName`. */
export function newName({ name, newName }: Pick<CopyInput, 'name' | 'newName'>): string {
  const chosen = name ?? newName
  if (chosen !== undefined) return chosen
  const message = 'name is missing: what the copy is to be called'
  throw badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'send {"name": "NAME"}')
}
