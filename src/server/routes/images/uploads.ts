// Handlers of resumable uploads.
import fs from 'node:fs/promises'
import { ApiError, conflict, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type { Image } from '../../../api/images/images.ts'
import type * as api from '../../../api/images/uploads.ts'
import type { UploadInput } from '../../../api/images/uploads.ts'
import { callerKey, type Principal } from '../../../auth/principal.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { DiskFullError, temporaryName } from '../../../images/content/temporary-files.ts'
import { BadDiskError } from '../../../images/qcow2/header.ts'
import { timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { failpoint } from '../../../platform/failpoint.ts'
import type { Caller } from '../../../rules/ownership.ts'
import { expiryOf } from '../../../rules/retention.ts'
import { isReady } from '../../../store/records/fleet-records.ts'
import { claimUpload, type ForwardServices, releaseUpload } from '../../cluster/forward-request.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { makeImage, problemsOf, type UploadServices } from '../../images/uploads.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type PartialUpload, PartialUploads } from '../../transfer/partial-uploads.ts'
import { diskFull } from '../../transfer/uploads.ts'
import { fileDigest } from '../../transfer/write-pieces.ts'

const noun = 'uploads'
const readOffset = 'Read the offset of the upload and continue from there'

type ResumableUploadServices = KindServices &
  UploadServices &
  ForwardServices & { readonly partialUploads: PartialUploads; readonly roles: Roles }

export function uploads(services: ResumableUploadServices): HandlersOf<typeof api> {
  const { partialUploads, ending, uploads: temporary } = services
  const kinds = imageKinds(services)
  const finishing = new Map<string, Promise<Image | Answer<Image>>>()

  async function existing(id: string, namespace: string, principal: Principal): Promise<PartialUpload> {
    const found = await partialUploads.find(id, callerKey(principal))
    if (found?.namespace === namespace) return found
    throw notFound(noun, id, { hint: 'Start a new upload' })
  }

  const uploadView = async ({ id, kind, name, size, updatedAt }: PartialUpload): Promise<api.Upload> => ({
    id,
    kind,
    name,
    size,
    offset: await partialUploads.offset(id),
    expiresAt: timestamp(expiryOf('upload', updatedAt)),
  })

  async function finish(upload: PartialUpload, caller: Caller, now: Date, sha256: string | undefined) {
    const { id, name, size, namespace } = upload
    const kind = kinds[upload.kind]
    const { store } = kind
    const requestKey = `upload ${id}`
    const before = upload.isDone ? store.existing(name) : undefined
    if (before?.value.requestKey === requestKey && isReady(before.value))
      return new Answer(201, store.view(before, caller), true)
    await checkReceived(upload, sha256)
    failpoint('upload.received')
    const made = await makeImage(services, kind, {
      image: { ...upload, bytes: size, source: 'upload' },
      context: { namespace, caller, now, requestKey },
      take: (options) => takeLinked(id, (file) => kind.take(file, options)),
    })
    if (!(made instanceof Answer)) await partialUploads.finish(upload)
    return made
  }

  async function checkReceived({ id, size }: PartialUpload, sha256: string | undefined): Promise<void> {
    const offset = await partialUploads.offset(id)
    if (offset !== size)
      throw new ApiError('Conflict', `Upload is incomplete: ${offset} of ${size} bytes received`, {
        kind: noun,
        name: id,
        hint: 'Send the rest first',
      })
    if (sha256 === undefined || (await fileDigest(partialUploads.file(id), ending)) === sha256) return
    await partialUploads.remove(id)
    const message = 'sha256 does not match the received data'
    throw invalid(noun, [invalidField('sha256', message)], 'Upload the file again')
  }

  /** Works on a second link to the file, so that the upload is still complete after an interruption. */
  async function takeLinked<T>(id: string, take: (file: string) => Promise<T>): Promise<T> {
    const file = await temporaryName(temporary.folder)
    try {
      await fs.link(partialUploads.file(id), file)
      return await take(file)
    } catch (error) {
      // The data is useless, or fills the disk so that nothing else can be written.
      if (error instanceof BadDiskError || error instanceof DiskFullError) await partialUploads.remove(id)
      throw error
    } finally {
      await fs.rm(file, { force: true })
    }
  }

  return {
    async beginUpload({ params: { namespace }, body, principal }) {
      const input = knownFields(body)
      const { store } = kinds[input.kind]
      const caller = callerKey(principal)
      const id = PartialUploads.idOf(caller, namespace, input)
      store.refuse([...store.nameProblems(input.name), ...problemsOf(input)], input.name, undefined)
      await claimUpload(services, id)
      const found = await partialUploads.find(id, caller)
      const isNew = !found || found.isDone
      if (isNew) {
        const removed = await partialUploads
          .begin({ ...input, id, caller, namespace })
          .catch(async (error: unknown) => {
            await releaseUpload(services, id)
            return noRoom(error)
          })
        for (const each of removed) await releaseUpload(services, each)
      }
      return new Answer(isNew ? 201 : 200, await uploadView(await existing(id, namespace, principal)), true)
    },

    getUpload: async ({ params: { upload, namespace }, principal }) =>
      uploadView(await existing(upload, namespace, principal)),

    async continueUpload({ params: { upload: id, namespace }, query: { offset = 0 }, upload: body, principal }) {
      const upload = await existing(id, namespace, principal)
      const isEnding = finishing.has(id) || upload.isDone
      const reached = await body.stream((incoming) =>
        isEnding
          ? Promise.resolve('elsewhere' as const)
          : partialUploads.append(upload, offset, incoming).catch(async (error: unknown) => {
              if (error instanceof DiskFullError) await partialUploads.remove(id)
              throw explained(error)
            }),
      )
      if (reached === 'elsewhere') throw conflict(noun, id, `cannot continue at offset ${offset}`, readOffset)
      return new Answer(200, await uploadView(await existing(id, namespace, principal)), true)
    },

    async finishUpload({ params: { upload: id, namespace }, body: { sha256 }, principal, now }) {
      const upload = await existing(id, namespace, principal)
      const caller = callerOf(services.roles, principal)
      const running = finishing.get(id) ?? finish(upload, caller, now, sha256).finally(() => finishing.delete(id))
      finishing.set(id, running)
      return running
    },

    async abandonUpload({ params: { upload: id, namespace }, principal }) {
      await existing(id, namespace, principal)
      if (finishing.has(id))
        throw notFound(noun, id, { hint: 'The upload is complete; delete the image when it is ready' })
      await partialUploads.remove(id)
      await releaseUpload(services, id)
      return success(`Upload ${id} deleted`, { kind: noun, name: id })
    },
  }
}

/** As in other operations, unknown fields are ignored. */
const knownFields = ({ kind, name, size, key, description, type, firmware, os }: UploadInput): UploadInput => ({
  ...{ kind, name, size, key },
  ...defined({ description, type, firmware, os }),
})

function noRoom(error: unknown): never {
  if (!(error instanceof DiskFullError)) throw error
  throw new ApiError('RequestEntityTooLarge', 'Not enough space on the disk of the server', {
    hint: 'Delete unused images, or ask the operator of the server for space',
  })
}

function explained(error: unknown): unknown {
  if (error instanceof DiskFullError) return diskFull(error)
  if (!(error instanceof RangeError)) return error
  return new ApiError('RequestEntityTooLarge', `The upload has ${error.message}`, {
    hint: 'Start a new upload with the correct size',
  })
}
