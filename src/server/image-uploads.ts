// An upload becomes an image or an ISO: the file to the disk, its record as Updating, its content into the store, the
// record Ready. Whatever fails on the way, nothing of it stays; what is in the store already, the collector finds.
import { ApiError, badRequest, type Cause, invalid } from '../api/errors.ts'
import type { Image } from '../api/images.ts'
import type { Architecture } from '../api/records.ts'
import { BadDiskError } from '../images/qcow2.ts'
import { DiskFullError } from '../images/temporary-files.ts'
import { timestamp } from '../platform/clock.ts'
import { failpoint } from '../platform/failpoint.ts'
import { nameOfFile } from '../rules/image-names.ts'
import { Answer } from './handlers.ts'
import type { Imported, ImportOptions } from './image-contents.ts'
import type { Asked, ImageStore } from './image-store.ts'
import type { Services } from './services.ts'
import { diskFull, type Upload, type UploadFields } from './uploads.ts'

export interface ImageUpload {
  readonly store: ImageStore
  readonly upload: Upload
  readonly asked: Asked
  readonly noun: 'images' | 'isos'
  take(file: string, options: ImportOptions): Promise<Imported>
}

/** The record tells how far it is, but a write for every chunk would be too much of it. */
const tellEveryMs = 1_000
const architectures: readonly string[] = ['arm64', 'amd64'] satisfies Architecture[]

export function receiveImage(services: Services, image: ImageUpload): Promise<Image | Answer<Image>> {
  return services.uploads.during(() => receive(services, image))
}

async function receive(
  { stopping, clock }: Services,
  { store, upload, asked, noun, take }: ImageUpload,
): Promise<Image | Answer<Image>> {
  const judge = (fields: UploadFields): void => {
    const causes = problemsOf(fields)
    if (fields.name === undefined && causes.length === 0 && !upload.isForm) throw nameless()
    const named = fields.name === undefined ? [] : store.nameProblems(fields.name)
    store.refuse([...named, ...causes], fields.name ?? '', asked.requestKey)
  }
  await using received = await upload.receive(judge)
  const { fields, fileName, file, bytes } = received
  const name = fields.name ?? nameOfFile(fileName ?? '')
  if (name === '') throw nameless()
  judge({ ...fields, name })
  failpoint('upload.received')
  const architecture = (fields.type ?? 'amd64') as Architecture
  const { entry, isRepeated } = await store.create(
    {
      name,
      description: fields.description ?? '',
      architecture,
      sizeBytes: bytes,
      state: 'Updating',
      progress: { percent: 0, bytes: 0 },
      source: fileName === undefined ? 'upload' : nameOfFile(fileName).slice(0, 256),
      sourceType: 'userUpload',
    },
    asked,
  )
  if (isRepeated) return new Answer(201, store.shown(entry), true)
  const told = teller((progress) => store.change(entry, (record) => ({ ...record, progress })))
  try {
    failpoint('upload.recorded')
    const imported = await take(file, { architecture, signal: stopping, progress: told.tell })
    await told.end()
    failpoint('upload.stored')
    const ready = await store.change(entry, ({ progress: _, state: __, ...record }) => ({
      ...record,
      ...imported,
      updatedAt: timestamp(clock.now()),
    }))
    return store.shown(ready)
  } catch (error) {
    await told.end()
    await store.forget(entry)
    throw refusalOf(error, noun, stopping)
  }
}

function problemsOf({ type, description }: UploadFields): Cause[] {
  const problem = (field: string, message: string): Cause => ({ field, reason: 'FieldValueInvalid', message })
  return [
    ...(type === undefined || architectures.includes(type) ? [] : [problem('type', 'type is arm64 or amd64')]),
    ...((description ?? '').length <= 1_024
      ? []
      : [problem('description', 'description has more than 1024 characters')]),
  ]
}

const nameless = (): ApiError => {
  const message = 'name is missing: what the upload is to be called'
  return badRequest([{ field: 'name', reason: 'FieldValueRequired', message }], 'add ?name=NAME to the address')
}

type Progress = { readonly percent: number; readonly bytes: number }

/** Passes on how far it is, one at a time and not too often. That it could not be told is no reason to fail. */
function teller(write: (progress: Progress) => Promise<unknown>): {
  tell(progress: Progress): void
  end(): Promise<void>
} {
  let lastMs = performance.now()
  let writing: Promise<unknown> | undefined
  return {
    tell(progress) {
      if (writing || performance.now() - lastMs < tellEveryMs) return
      writing = write(progress)
        .catch(() => undefined)
        .finally(() => {
          lastMs = performance.now()
          writing = undefined
        })
    },
    async end() {
      lastMs = Number.POSITIVE_INFINITY
      await writing
    },
  }
}

/** What QEMU tools make of a file is never asked: src/images has its own reader. */
function refusalOf(error: unknown, noun: string, stopping: AbortSignal): unknown {
  if (error instanceof BadDiskError)
    return invalid(
      noun,
      [{ field: 'image', reason: 'FieldValueInvalid', message: error.message }],
      'convert it to a plain raw or qcow2 disk, and upload that',
    )
  if (error instanceof DiskFullError) return diskFull(error)
  if (!stopping.aborted) return error
  return new ApiError('ServiceUnavailable', 'the server stopped before the upload was taken in; nothing was kept', {
    hint: 'send it again when the server is back',
    retryAfterSeconds: 5,
  })
}
