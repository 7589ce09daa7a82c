// Images and ISOs in the API of 2.4.x. Save, commit, copy and pull were synchronous there, so the gateway waits for them.
import { ApiError } from '../../api/errors.ts'
import {
  copyImage,
  deleteImage,
  downloadImage,
  generateImage,
  type Image,
  listImages,
  uploadImage,
} from '../../api/images/images.ts'
import { copyIso, deleteIso, listIsos, uploadIso } from '../../api/images/isos.ts'
import { listRemoteImages, pullRemoteImage } from '../../api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../api/images/remote-isos.ts'
import { type Operation, paramNames } from '../../api/operation.ts'
import { commitVm, saveVm } from '../../api/vms/vms.ts'
import { defined } from '../../platform/defined.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { ImageRecord } from '../../store/records/fleet-records.ts'
import { goneSignal } from '../http/gone-signal.ts'
import { Waits } from '../nodes/waits.ts'
import type { LegacyContext, LegacyHandler, LegacyHandlers } from './call.ts'
import { readLegacyFields, text } from './fields.ts'
import { legacyImage, shownIso } from './shapes.ts'
import { oneVmCalled } from './vms.ts'

/** Long enough for a large disk. */
const timeoutMs = 2 * 3_600_000

interface Kind {
  readonly word: 'image' | 'iso'
  readonly waits: Waits<ImageRecord>
  readonly key: (name: string) => string
}

/** Waits until the image is ready. Throws the reason of a failure. */
async function ready({ word, waits, key }: Kind, name: string, { services, reply }: LegacyContext): Promise<void> {
  const options = { ms: timeoutMs, signal: AbortSignal.any([services.ending, goneSignal(reply)]) }
  const look = (entry: { readonly value: ImageRecord } | undefined): ImageRecord | null | undefined =>
    entry?.value.state === 'Updating' ? undefined : (entry?.value ?? null)
  const record = await waits.until(key(name), look, options).catch(() => {
    throw new ApiError('Timeout', `${word} "${name}" is still being made`, {
      hint: `It continues. Run svc3 ${word} list ${name} to see its progress`,
    })
  })
  // A failed commit leaves the image ready, with a reason.
  if (record && record.state !== 'Failed' && record.errorMessage === undefined) return
  const why = record?.errorMessage ?? 'it was deleted in the meantime'
  throw new ApiError('InternalError', `${word} "${name}" could not be made: ${why}`, {
    hint: `Run svc3 ${word} list ${name} -o wide to see its status`,
  })
}

const named = { image: text, iso: text, new_name: text }
const vmFields = { orka_vm_name: text, new_name: text, description: text }

const namesOf = async (
  context: LegacyContext,
  operation: typeof listRemoteImages | typeof listRemoteIsos,
): Promise<string[]> => (await context.run(operation)).items.map(({ name }) => name)

const listAll: LegacyHandler = async (context) => {
  const images = await context.list(listImages)
  const addedAt = ({ name, lastUpdatedTimestamp }: Image): string =>
    context.services.collections.images.get('', name)?.value.createdAt ?? lastUpdatedTimestamp
  return {
    image_attributes: images.map((image) => legacyImage(image, addedAt(image))),
    images: images.map(({ name }) => name),
  }
}

const listAllIsos: LegacyHandler = async (context) => {
  const isos = await context.list(listIsos)
  return { iso_attributes: isos.map(shownIso), isos: isos.map(({ name }) => name) }
}

const generate: LegacyHandler = async (context) => {
  const read = readLegacyFields(context.fields, { file_name: text, file_size: text }, ['file_name', 'file_size'])
  await context.run(generateImage, { body: { name: read.file_name, size: read.file_size } })
  return { message: 'Successfully generated image' }
}

const download: LegacyHandler = async (context) => {
  const image = context.params.image ?? ''
  try {
    return await context.download(downloadImage, { image })
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'NotFound' || error.options.kind !== 'images') throw error
    throw new ApiError('NotFound', `image file not found: ${image.slice(0, 200)}`, error.options)
  }
}

export function imageCalls({ collections }: { readonly collections: Collections }): LegacyHandlers {
  const images: Kind = {
    word: 'image',
    waits: new Waits(collections.images.view),
    key: (name) => collections.images.key('', name),
  }
  const isos: Kind = {
    word: 'iso',
    waits: new Waits(collections.isos.view),
    key: (name) => collections.isos.key('', name),
  }

  /** Copies or pulls, and answers when the new image or ISO is ready. */
  const make =
    (kind: Kind, operation: Operation, message: string, required: readonly 'new_name'[] = []): LegacyHandler =>
    async (context) => {
      const { word } = kind
      const { [word]: source, new_name: name } = readLegacyFields(context.fields, named, [word, ...required])
      const param = paramNames(operation.path).at(-1) ?? ''
      const input = { params: { [param]: source } as never, body: defined({ name }) as never }
      const { name: made } = (await context.run(operation, input)) as { name: string }
      await ready(kind, made, context)
      return { message }
    }

  const remove =
    ({ word }: Kind, operation: Operation): LegacyHandler =>
    async (context) => {
      const { [word]: name } = readLegacyFields(context.fields, named, [word])
      await context.run(operation, { params: { [word]: name } as never })
      return { message: `Successfully deleted: ${name}` }
    }

  const upload =
    (operation: Operation): LegacyHandler =>
    async (context) => {
      const { name } = (await context.run(operation)) as { name: string }
      return { message: `Successfully uploaded ${name}` }
    }

  const save: LegacyHandler = async (context) => {
    const { orka_vm_name: called, new_name: imageName } = readLegacyFields(context.fields, vmFields, [
      'orka_vm_name',
      'new_name',
    ])
    const { name: vm } = await oneVmCalled(context, called)
    await context.run(saveVm, { params: { vm }, body: { imageName } })
    await ready(images, imageName, context)
    return { message: 'saved' }
  }

  const commit: LegacyHandler = async (context) => {
    const { orka_vm_name: called } = readLegacyFields(context.fields, vmFields, ['orka_vm_name'])
    const { name: vm, image } = await oneVmCalled(context, called)
    await context.run(commitVm, { params: { vm }, body: {} })
    await ready(images, image, context)
    return { message: 'committed' }
  }

  return {
    'GET /resources/image/list': listAll,
    'GET /resources/image/list-remote': async (context) => ({
      images: await namesOf(context, listRemoteImages),
    }),
    'POST /resources/image/copy': make(images, copyImage, 'Successfully copied', ['new_name']),
    'POST /resources/image/pull': make(images, pullRemoteImage, 'Successfully copied image.'),
    'POST /resources/image/delete': remove(images, deleteImage),
    'POST /resources/image/commit': commit,
    'POST /resources/image/save': save,
    'POST /resources/image/generate': generate,
    'POST /resources/image/upload': upload(uploadImage),
    'GET /resources/image/download/{image}': download,
    'GET /resources/iso/list': listAllIsos,
    // docs/spec.md R50 maps this call to remote images, but clients that list ISOs want ISOs.
    'GET /resources/iso/list-remote': async (context) => ({
      isos: await namesOf(context, listRemoteIsos),
      images: await namesOf(context, listRemoteImages),
    }),
    'POST /resources/iso/pull': make(isos, pullRemoteIso, 'Successfully copied iso.'),
    'POST /resources/iso/copy': make(isos, copyIso, 'Successfully copied iso.', ['new_name']),
    'POST /resources/iso/delete': remove(isos, deleteIso),
    'POST /resources/iso/upload': upload(uploadIso),
  }
}
