// Handlers of images, which belong to the cluster.
import type { Architecture } from '../../../api/architecture.ts'
import { ApiError, badRequest, invalidField } from '../../../api/errors.ts'
import type { CopyInput } from '../../../api/images/image-operations.ts'
import type * as api from '../../../api/images/images.ts'
import type { Principal } from '../../../auth/principal.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import type { Caller } from '../../../rules/ownership.ts'
import { diskSizeRule, parseDiskSize } from '../../../rules/sizes.ts'
import { demoImage } from '../../../store/records/demo-image.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { problemsOf, receiveImage, type UploadServices } from '../../images/uploads.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const noun = 'images'

export function images(services: KindServices & UploadServices & { readonly roles: Roles }): HandlersOf<typeof api> {
  const kind = imageKinds(services).image
  const { store, contents } = kind
  const by = (principal: Principal): Caller => callerOf(services.roles, principal)

  return {
    listImages: ({ principal }) => store.listed(by(principal), services.roles.revFor(principal)),

    getImage: ({ params: { image }, principal }) => store.view(store.existing(image), by(principal)),

    async generateImage({
      params: { namespace },
      body: { name, size, firmware, os, description },
      principal,
      now,
      requestKey,
    }) {
      const sizeBytes = parseDiskSize(size)
      const message = `size "${size}" is invalid: use ${diskSizeRule}`
      const sizeProblems = sizeBytes === undefined ? [invalidField('size', message)] : []
      const bootProblems = problemsOf({ ...(firmware && { firmware }), ...(os && { os }) })
      store.refuse([...store.nameProblems(name), ...sizeProblems, ...bootProblems], name, requestKey)
      const architecture = 'amd64'
      const empty = await contents.empty(architecture, sizeBytes ?? 0, { firmware, os })
      const source = { source: 'generated', sourceType: 'generated' } as const
      const { entry, isRepeated } = await store.create(
        { name, description: description ?? '', architecture, ...(os && { os }), ...empty, ...source },
        { namespace, caller: by(principal), now, requestKey },
      )
      return new Answer(202, store.view(entry, by(principal)), isRepeated)
    },

    async addDemoImage({ params: { namespace }, body: { type, image = 'tiny' }, principal, now, requestKey }) {
      const record = demoImage(image, type)
      const found = services.collections.images.get('', record.name)
      if (found && found.value.recipe === record.recipe) return new Answer(200, store.view(found, by(principal)), true)
      // Nodes with macOS cannot build it, because it consists of Debian packages.
      const nodes = services.collections.nodes.view.range().map(({ value }) => value.report)
      if (!nodes.some((report) => report?.architecture === type && report.driver !== 'apple'))
        throw noBuilder(record.name, type)
      const { entry, isRepeated } = await store.create(record, {
        namespace,
        caller: by(principal),
        now,
        requestKey,
      })
      return new Answer(201, store.view(entry, by(principal)), isRepeated)
    },

    async copyImage({ params: { namespace, image }, body, principal, now, requestKey }) {
      const to = { name: newName(body), description: body.description }
      const caller = by(principal)
      const { entry, isRepeated } = await store.copy(image, to, { namespace, caller, now, requestKey })
      return new Answer(202, store.view(entry, by(principal)), isRepeated)
    },

    describeImage: async ({ params: { image }, body: { description }, principal, now }) =>
      store.view(await store.describe(image, description, by(principal), now), by(principal)),

    protectImage: async ({ params: { image }, body: { protected: isOn }, principal, now }) =>
      store.view(await store.protect(image, isOn, now), by(principal)),

    restoreImage: async ({ params: { image }, body: { version }, principal, now }) =>
      store.view(await store.restore(image, version, by(principal), now), by(principal)),

    deleteImage: ({ params: { image }, principal }) => store.remove(image, by(principal)),

    downloadImage: ({ params: { image }, query: { format } }) => store.download(image, format),

    uploadImage: ({ params: { namespace }, upload, principal, now, requestKey }) =>
      receiveImage(services, kind, upload, { namespace, caller: by(principal), now, requestKey }),
  }
}

const noBuilder = (name: string, type: Architecture): ApiError =>
  new ApiError('Conflict', `No ${type} node with QEMU can build image ${name}`, {
    kind: noun,
    hint: 'Upload a disk with svc3 image upload, or pull an image with svc3 remote-image pull',
  })

/** Orka's clients call the field `newName`. */
export function newName({ name, newName }: Pick<CopyInput, 'name' | 'newName'>): string {
  const chosen = name ?? newName
  if (chosen !== undefined) return chosen
  const message = 'name is required: the name of the copy'
  throw badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'Send {"name": "NAME"}')
}
