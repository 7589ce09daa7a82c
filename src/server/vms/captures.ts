// Starts a capture of a VM as an image. The image's record is written first, which reserves the name or takes the lock,
// then the VM's record, whose next generation makes the node freeze the VM. If the server crashes in between, the
// repeated request completes it, or a controller cleans up.
import { randomUUID } from 'node:crypto'
import { ApiError, conflict } from '../../api/errors.ts'
import { timestamp } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { type Caller, maySee } from '../../rules/ownership.ts'
import { powerAfter } from '../../rules/vm-actions.ts'
import { changeCaptured, withoutCapture } from '../../store/records/captures.ts'
import type { Collections } from '../../store/records/collections.ts'
import {
  type ImageCapture,
  type ImageRecord,
  isReady,
  type VmCapture,
  type VmRecord,
} from '../../store/records/fleet-records.ts'
import { parentOfSaved, savedFrom, vmName } from '../../store/records/image-versions.ts'
import { changeVm, withDesired } from '../../store/records/vms.ts'
import type { Entry, Store } from '../../store/store.ts'
import { visibleVms, vmsText } from '../images/image-view.ts'
import { assertMayChange, type CreatedImage, type ImageStore, type RequestContext } from '../images/store.ts'
import { assertMay } from './refusals.ts'

const gib = 2 ** 30
const noProgress = { percent: 0, bytes: 0 }

export interface CaptureServices {
  readonly collections: Collections
  readonly store: Store
}

interface SaveRequest {
  readonly vm: Entry<VmRecord>
  readonly imageName: string
  readonly description: string | undefined
  readonly context: RequestContext
}

export async function requestSave(
  services: CaptureServices,
  images: ImageStore,
  request: SaveRequest,
): Promise<CreatedImage> {
  const { vm, imageName: image, context } = request
  const { name, namespace, shape, observed, desired } = vm.value
  images.refuse(images.nameProblems(image, 'imageName'), image, context.requestKey)
  if (!isRepeated(vm.value, context.requestKey)) assertMay('save', vm.value)
  const from = services.collections.images.get('', shape.image)?.value
  const created = await images.create(
    {
      name: image,
      description: request.description || savedFrom({ namespace, name }),
      architecture: shape.architecture,
      // The node reports the guest system as well, also for images in registries.
      ...(from?.os && { os: from.os }),
      sizeBytes: (observed.diskGb ?? desired.diskGb ?? 0) * gib,
      state: 'Updating',
      progress: noProgress,
      source: name,
      sourceType: 'vm',
      parent: parentOfSaved(vm.value, from),
      capture: captureOf('save', vm.value, context),
    },
    context,
  )
  failpoint('captures.save.recorded')
  // An earlier try of this request may have finished.
  const { capture } = created.entry.value
  if (!capture) return created
  try {
    await attach(services, vm, { id: capture.id, kind: 'save', withMemory: true, image }, context.requestKey)
    return created
  } catch (error) {
    await images.forget(created.entry)
    throw error
  }
}

interface CommitRequest {
  readonly vm: Entry<VmRecord>
  readonly caller: Caller
  readonly description: string | undefined
  readonly now: Date
  readonly requestKey: string | undefined
}

export async function requestCommit(
  services: CaptureServices,
  images: ImageStore,
  request: CommitRequest,
): Promise<CreatedImage> {
  const { vm, caller, description, requestKey } = request
  const { shape } = vm.value
  const isRepetition = isRepeated(vm.value, requestKey)
  if (!isRepetition) assertMay('commit', vm.value)
  if (vm.value.imageReference !== undefined) throw notOfCluster(vm.value)
  const known = images.existing(shape.image)
  const isDone = isRepetition && known.value.capture === undefined
  if (isDone) return { entry: known, isRepeated: true }
  const { entry, capture } = await lock(services, images, request)
  const unlock = () => changeCaptured(services.collections, { id: capture.id, image: shape.image }, withoutCapture)
  try {
    failpoint('captures.commit.locked')
    if (shape.architecture === 'amd64') await assertAlone(services, vm.value, caller)
    await attach(
      services,
      vm,
      {
        id: capture.id,
        kind: 'commit',
        withMemory: true,
        image: shape.image,
        ...(description !== undefined && { description }),
      },
      requestKey,
    )
    return { entry, isRepeated: isRepetition }
  } catch (error) {
    await unlock()
    throw error
  }
}

const notOfCluster = ({ name, namespace, shape }: VmRecord): ApiError =>
  new ApiError('Invalid', `VM ${name} was deployed from ${shape.image}, which is not an image of this cluster`, {
    kind: 'vms',
    name,
    hint: `Push it to a registry: svc3 vm push ${name} IMAGE -n ${namespace}; or save it as a new image: svc3 vm save ${name} IMAGE -n ${namespace}`,
  })

export const isRepeated = ({ desired }: VmRecord, requestKey: string | undefined): boolean =>
  requestKey !== undefined && desired.requestKey === requestKey

const captureOf = (
  kind: ImageCapture['kind'],
  { namespace, name, uid }: VmRecord,
  { caller, now, requestKey }: Pick<RequestContext, 'caller' | 'now' | 'requestKey'>,
): ImageCapture => ({
  id: randomUUID(),
  kind,
  requestedAt: timestamp(now),
  ...(requestKey !== undefined && { requestKey }),
  vm: { namespace, name, uid },
  by: caller.name,
})

/** Only one VM can commit into an image at a time, and only into an image that is complete. */
async function lock(
  { collections }: Pick<CaptureServices, 'collections'>,
  images: ImageStore,
  { vm, caller, now, requestKey }: CommitRequest,
): Promise<{ entry: Entry<ImageRecord>; capture: ImageCapture }> {
  const capture = captureOf('commit', vm.value, { caller, now, requestKey })
  const { shape, name, namespace } = vm.value
  const { image } = shape
  const instead = `save it as a new image: svc3 vm save ${name} NEW-IMAGE -n ${namespace}`
  const entry = await collections.images.change(collections.images.key('', image), (): ImageRecord => {
    const record = images.existing(image).value
    const held = record.capture
    if (held && requestKey !== undefined && held.requestKey === requestKey) return record
    assertMayChange('images', record, caller, 'commit to it', instead)
    if (held || !isReady(record)) throw beingWritten(record, caller, namespace)
    return { ...withoutCapture(record), state: 'Updating', progress: noProgress, capture }
  })
  return { entry, capture: entry.value.capture ?? capture }
}

/**
 * On Intel, no other VM may use the image. VMs are listed from the store after the lock is taken: a deployment written
 * before is in the list, and one written later sees the lock.
 */
async function assertAlone(
  { store, collections }: CaptureServices,
  { uid, name, namespace, shape }: VmRecord,
  caller: Caller,
): Promise<void> {
  const { entries } = await store.list(collections.vms.prefix)
  const others = entries
    .map(({ value }) => value as unknown as VmRecord)
    .filter((other) => other.uid !== uid && other.shape.image === shape.image)
    .map(vmName)
  if (others.length === 0) return
  const hint = `Delete those VMs first, or save this one as a new image: svc3 vm save ${name} IMAGE -n ${namespace}`
  throw conflict('images', shape.image, `is also used by ${vmsText(visibleVms(others, caller))}`, hint)
}

/** Adds the capture to the VM, whose node gets it with the next generation. */
export async function attach(
  { collections }: Pick<CaptureServices, 'collections'>,
  { key, value: { uid, name } }: Entry<VmRecord>,
  capture: VmCapture,
  requestKey: string | undefined,
): Promise<void> {
  const { kind } = capture
  const attached = await changeVm(collections, key, uid, (record) => {
    const { captures = [] } = record
    if (captures.some(({ id }) => id === capture.id)) return undefined
    assertMay(kind, record)
    const next = withDesired(record, { power: powerAfter(kind), action: kind, requestKey })
    const { imageContent: base } = record
    return { ...next, captures: [...captures, { ...capture, ...(base !== undefined && { base }) }] }
  })
  if (!attached) throw conflict('vms', name, 'was deleted in the meantime', 'Deploy another VM')
}

function beingWritten({ name, state, capture }: ImageRecord, caller: Caller, namespace: string): ApiError {
  const vm = capture && (maySee(caller, capture.vm.namespace) ? `VM ${capture.vm.name}` : 'A VM in another namespace')
  return new ApiError('Conflict', vm ? `${vm} is being committed to image ${name}` : `Image ${name} is ${state}`, {
    kind: 'images',
    name,
    hint: `Wait until it is Ready: svc3 image list ${name} -n ${namespace}`,
  })
}
