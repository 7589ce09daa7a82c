// Makes an image or ISO of an upload: file to disk, record Updating, content into the store, record Ready. A failure
// leaves no record and no file; content already stored is garbage-collected.
import { type Architecture, architectures } from '../../api/architecture.ts'
import { type ApiError, badRequest, type Cause, invalidField } from '../../api/errors.ts'
import type { Image } from '../../api/images/images.ts'
import type { Clock } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { nameOfFile } from '../../rules/image-names.ts'
import { Answer } from '../http/answer.ts'
import { endedEarly, type OpenUpload, type UploadFields, type Uploads } from '../transfer/uploads.ts'
import type { Firmware, GuestSystem, Imported, ImportOptions } from './contents.ts'
import { intakeError, takeIn } from './intake.ts'
import type { ImageStore, RequestContext } from './store.ts'

export interface UploadServices {
  readonly uploads: Uploads
  readonly clock: Clock
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
}

interface ImageUpload {
  readonly store: ImageStore
  readonly upload: OpenUpload
  readonly asked: RequestContext
  readonly noun: 'images' | 'isos'
  take(file: string, options: ImportOptions): Promise<Imported>
}

const firmwares: readonly string[] = ['bios', 'uefi'] satisfies Firmware[]
const guestSystems: readonly string[] = ['macos', 'linux', 'other'] satisfies GuestSystem[]

export async function receiveImage(
  services: UploadServices,
  { store, upload, asked, noun, take: importFile }: ImageUpload,
): Promise<Image | Answer<Image>> {
  const { ending } = services
  const judge = (fields: UploadFields): void => {
    const causes = problemsOf(fields)
    if (fields.name === undefined && causes.length === 0 && !upload.isForm) throw nameless()
    const named = fields.name === undefined ? [] : store.nameProblems(fields.name)
    store.refuse([...named, ...causes], fields.name ?? '', asked.requestKey)
  }
  await using received = await upload.receive(judge)
  const { fields, fileName, file, bytes, left } = received
  const name = fields.name ?? nameOfFile(fileName ?? '')
  if (name === '') throw nameless()
  judge({ ...fields, name })
  failpoint('upload.received')
  const architecture = (fields.type ?? 'amd64') as Architecture
  const firmware = fields.firmware as Firmware | undefined
  const { entry, isRepeated } = await store.create(
    {
      name,
      description: fields.description ?? '',
      architecture,
      ...(noun === 'images' && fields.os !== undefined && { os: fields.os as GuestSystem }),
      sizeBytes: bytes,
      state: 'Updating',
      progress: { percent: 0, bytes: 0 },
      source: fileName === undefined ? 'upload' : nameOfFile(fileName).slice(0, 256),
      sourceType: 'userUpload',
    },
    asked,
  )
  if (isRepeated) return new Answer(201, store.shown(entry, asked.caller), true)
  try {
    failpoint('upload.recorded')
    using _ = services.uploads.hold()
    const stored = (): void => failpoint('upload.stored')
    const take = (options: ImportOptions): Promise<Imported> => importFile(file, options)
    const signal = AbortSignal.any([ending, left])
    return store.shown(await takeIn(services, { store, entry, firmware, signal, take, stored }), asked.caller)
  } catch (error) {
    await store.forget(entry)
    throw left.aborted ? endedEarly() : intakeError(error, noun, ending)
  }
}

export function problemsOf({ type, firmware, os, description }: UploadFields): Cause[] {
  return [
    ...(type === undefined || architectures.some((each) => each === type)
      ? []
      : [invalidField('type', 'type must be arm64 or amd64')]),
    ...(firmware === undefined || firmwares.includes(firmware)
      ? []
      : [invalidField('firmware', 'firmware must be bios or uefi')]),
    ...(firmware === 'bios' && type === 'arm64'
      ? [invalidField('firmware', 'firmware must be uefi for arm64 disks')]
      : []),
    ...(os === undefined || guestSystems.includes(os) ? [] : [invalidField('os', 'os must be macos, linux or other')]),
    ...(firmware === 'bios' && os === 'macos' ? [invalidField('firmware', 'firmware must be uefi for macOS')] : []),
    ...((description ?? '').length <= 1_024
      ? []
      : [invalidField('description', 'description must have at most 1024 characters')]),
  ]
}

const nameless = (): ApiError => {
  const message = 'name is required: the name of the new image or ISO'
  return badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'Add ?name=NAME to the address')
}
