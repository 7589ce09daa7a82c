// Makes an image or ISO from an uploaded file: the record as Updating, the content in the store, the record as Ready. A
// failure leaves no record and no file. Content that was already stored is garbage-collected.
import { type Architecture, architectures } from '../../api/architecture.ts'
import { type ApiError, badRequest, type Cause, invalidIf } from '../../api/errors.ts'
import type { Image } from '../../api/images/images.ts'
import type { Clock } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { nameOfFile } from '../../rules/image-names.ts'
import { Answer } from '../http/answer.ts'
import { endedEarly, type OpenUpload, type UploadFields, type Uploads } from '../transfer/uploads.ts'
import type { Firmware, GuestSystem, Imported, ImportOptions } from './contents.ts'
import { intakeError, takeIn } from './intake.ts'
import type { ImageKindParts } from './kinds.ts'
import type { RequestContext } from './store.ts'

export interface UploadServices {
  readonly uploads: Uploads
  readonly clock: Clock
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
}

const firmwares: readonly string[] = ['bios', 'uefi'] satisfies Firmware[]
const guestSystems: readonly string[] = ['macos', 'linux', 'other'] satisfies GuestSystem[]

export async function receiveImage(
  services: UploadServices,
  kind: ImageKindParts,
  upload: OpenUpload,
  context: RequestContext,
): Promise<Image | Answer<Image>> {
  const { store, take } = kind
  const check = (fields: UploadFields): void => {
    const causes = problemsOf(fields)
    if (fields.name === undefined && causes.length === 0 && !upload.isForm) throw nameless()
    const named = fields.name === undefined ? [] : store.nameProblems(fields.name)
    store.refuse([...named, ...causes], fields.name ?? '', context.requestKey)
  }
  await using received = await upload.receive(check)
  const { fields, fileName, file, bytes, left } = received
  const name = fields.name ?? nameOfFile(fileName ?? '')
  if (name === '') throw nameless()
  check({ ...fields, name })
  failpoint('upload.received')
  const source = fileName === undefined ? 'upload' : nameOfFile(fileName).slice(0, 256)
  const image = { ...fields, name, bytes, source }
  return await makeImage(services, kind, { image, context, left, take: (options) => take(file, options) })
}

interface UploadedImage {
  readonly image: UploadFields & { readonly name: string; readonly bytes: number; readonly source: string }
  readonly context: RequestContext
  /** Aborted when the client has disconnected, if the upload cannot be resumed. */
  readonly left?: AbortSignal
  take(options: ImportOptions): Promise<Imported>
}

/** Makes an image or ISO of checked fields. A repeated request gets the one that it made before. */
export async function makeImage(
  services: UploadServices,
  { store, noun }: ImageKindParts,
  { image, context, left, take }: UploadedImage,
): Promise<Image | Answer<Image>> {
  const { ending } = services
  const { name, description = '', type = 'amd64', os, firmware, bytes, source } = image
  const { entry, isRepeated } = await store.create(
    {
      name,
      description,
      architecture: type as Architecture,
      ...(noun === 'images' && os !== undefined && { os: os as GuestSystem }),
      sizeBytes: bytes,
      state: 'Updating',
      progress: { percent: 0, bytes: 0 },
      source,
      sourceType: 'userUpload',
    },
    context,
  )
  if (isRepeated) return new Answer(201, store.view(entry, context.caller), true)
  try {
    failpoint('upload.recorded')
    using _ = services.uploads.hold()
    const signal = left ? AbortSignal.any([ending, left]) : ending
    const stored = (): void => failpoint('upload.stored')
    const intake = { store, entry, firmware: firmware as Firmware | undefined, signal, take, stored }
    return store.view(await takeIn(services, intake), context.caller)
  } catch (error) {
    await store.forget(entry)
    throw left?.aborted ? endedEarly() : intakeError(error, noun, ending)
  }
}

export const problemsOf = ({ type, firmware, os, description = '' }: UploadFields): Cause[] => [
  ...invalidIf(
    type !== undefined && !architectures.some((each) => each === type),
    'type',
    'type must be arm64 or amd64',
  ),
  ...invalidIf(firmware !== undefined && !firmwares.includes(firmware), 'firmware', 'firmware must be bios or uefi'),
  ...invalidIf(firmware === 'bios' && type === 'arm64', 'firmware', 'firmware must be uefi for arm64 disks'),
  ...invalidIf(os !== undefined && !guestSystems.includes(os), 'os', 'os must be macos, linux or other'),
  ...invalidIf(firmware === 'bios' && os === 'macos', 'firmware', 'firmware must be uefi for macOS'),
  ...invalidIf(description.length > 1_024, 'description', 'description must have at most 1024 characters'),
]

const nameless = (): ApiError => {
  const message = 'name is required: the name of the new image or ISO'
  return badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'Add ?name=NAME to the address')
}
