// Creates the record of a VM from a request. The record is the only state, so the VM starts even after a restart.
import { randomBytes, randomUUID } from 'node:crypto'
import { ApiError, alreadyExists } from '../../api/errors.ts'
import type { VmDeployment } from '../../api/vms/vm-deployment.ts'
import type { VmShape } from '../../api/vms/vm-shape.ts'
import { defined } from '../../platform/defined.ts'
import { isImageReference } from '../../rules/image-reference.ts'
import { nameSuffix } from '../../rules/names.ts'
import { type Demand, demandOf, neverFits } from '../../rules/placement.ts'
import { impossible } from '../../rules/placement-reasons.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { ImageRecord, NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { releaseQuota } from '../../store/records/quotas.ts'
import { type Entry, ignoreLost, isFault, StoreError } from '../../store/store.ts'
import { createInside } from '../gate/namespace.ts'
import type { VmSecret } from '../nodes/desired.ts'
import { type RegistryServices, referenceOf } from '../remotes/registries.ts'
import { findRegistryImage } from '../remotes/registry-images.ts'
import { contentNow } from './base-image.ts'
import { planVm, type VmRequest } from './planned-vm.ts'
import { takeQuota } from './quota.ts'

const kind = 'vms'
/** Enough tries while a commit changes the record of its image, about once a second. */
const maxTries = 10

export type DeployServices = { readonly collections: Collections } & Omit<RegistryServices, 'collections'>

/** `written` is not called for a repeated request, which gets the record that it created before. */
export async function createVm(
  services: DeployServices,
  request: VmRequest,
  written: (entry: Entry<VmRecord>) => Promise<void>,
): Promise<Entry<VmRecord>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await createAsSeen(services, request, written)
    } catch (error) {
      if (!(error instanceof ImageMoved) || attempt === maxTries) throw error
      await services.collections.images.moved(error.image)
    }
  }
}

/** The image changed after it was read: it may be deleted, locked by a commit, or have other content. */
class ImageMoved extends StoreError {
  readonly image: Entry<ImageRecord>

  constructor(image: Entry<ImageRecord>, cause: unknown) {
    super('Conflict', `Image ${image.value.name} changed during the deployment: try again`, { cause })
    this.image = image
  }
}

async function createAsSeen(
  services: DeployServices,
  request: VmRequest,
  written: (entry: Entry<VmRecord>) => Promise<void>,
): Promise<Entry<VmRecord>> {
  const { namespace, body, requestKey } = request
  const { record, secret } = planVm(services, request)
  // A commit locks the image before it looks for VMs of it. So either it finds this VM, or this write fails.
  const image = services.collections.images.get('', record.shape.image)
  const earlier = services.collections.vms.get(namespace, nameFor(body, requestKey, 1))
  if (requestKey !== undefined && earlier?.value.requestKey === requestKey) return earlier
  const pinned = await contentOf(services, namespace, record.shape)
  assertPossible(services.collections.nodes, namespace, demandOf({ ...record, ...pinned }), body)
  for (let attempt = 1; ; attempt++) {
    const name = nameFor(body, requestKey, attempt)
    const planned = { ...record, ...pinned, name, uid: randomUUID() }
    try {
      if (request.isRefusedOverQuota) {
        // A repeated request has its VM already, which must not count against the quota a second time.
        if (services.collections.vms.get(namespace, name)) throw nameTaken(name)
        await takeQuota(services.collections, planned)
      }
      const entry = await write(services, planned, { secret, image })
      await written(entry)
      return entry
    } catch (error) {
      const found = services.collections.vms.get(namespace, name)
      // If the store did not respond, the VM may exist. The quota sweep then decides.
      if (request.isRefusedOverQuota && found?.value.uid !== planned.uid && isRefusal(error))
        await releaseQuota(services.collections, namespace, planned.uid)
      if (!isFault(error, 'AlreadyExists')) throw error
      if (found && requestKey !== undefined && found.value.requestKey === requestKey) return found
      const isGenerated = !body.name || body.shouldGenerateName === true
      if (!isGenerated || attempt === 20) throw exists(name, namespace)
    }
  }
}

/** Whether the record was certainly not written. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError || isFault(error, 'AlreadyExists') || isFault(error, 'Conflict')

const nameTaken = (name: string): StoreError => new StoreError('AlreadyExists', `VM ${name} exists`)

/** Refuses a VM that would wait forever, because no node could hold it even when empty. */
export function assertPossible(
  nodes: Collections['nodes'],
  namespace: string,
  demand: Demand,
  { cpu, vmConfig }: Pick<VmDeployment, 'cpu' | 'vmConfig'>,
): void {
  const never = neverFits(demand, nodesIn(nodes, namespace))
  if (never) throw impossible(never, demand, namespace, { isDefaultCpu: !cpu && !vmConfig })
}

/** Writes secrets first, so that a VM always has its own. A controller deletes secrets without a VM. */
async function write(
  services: DeployServices,
  record: VmRecord,
  { secret, image }: { readonly secret: VmSecret | undefined; readonly image: Entry<ImageRecord> | undefined },
): Promise<Entry<VmRecord>> {
  const { collections, secrets } = services
  const { uid, name, namespace, createdAt } = record
  if (secret) {
    const key = collections.vmSecrets.key('', uid)
    await secrets.sealing((protect) =>
      collections.vmSecrets.create('', uid, protect(key, { uid, namespace, name, createdAt }, JSON.stringify(secret))),
    )
  }
  try {
    return await createInside(services, namespace, collections.vms, name, record, image && [image])
  } catch (error) {
    // If the store did not respond, the VM may exist and need its secret.
    const secretRecord = secret && isRefusal(error) ? collections.vmSecrets.get('', uid) : undefined
    if (secretRecord) await collections.vmSecrets.delete(secretRecord).catch(ignoreLost)
    throw image && isFault(error, 'Conflict') ? new ImageMoved(image, error) : error
  }
}

/** Pins the content of the images, which may change later. */
async function contentOf(
  services: DeployServices,
  namespace: string,
  { image, iso, architecture }: VmShape,
): Promise<Pick<VmRecord, 'imageContent' | 'imageRecipe' | 'imageReference' | 'isoContent' | 'os'>> {
  const { images, isos } = services.collections
  if (isImageReference(image)) {
    const found = await findRegistryImage(services, referenceOf(image, 'pull'), { namespace, architecture })
    return { imageReference: found.pinned, ...defined({ os: found.os }) }
  }
  const isoContent = iso === undefined ? undefined : isos.get('', iso)?.value.content
  return { ...contentNow(images.get('', image)?.value), ...defined({ isoContent }) }
}

/** The first generated name is derived from the request key, so that a repeated request finds its VM. */
function nameFor({ name, shouldGenerateName }: VmDeployment, requestKey: string | undefined, attempt: number): string {
  if (name && !shouldGenerateName) return name
  const bytes = requestKey !== undefined && attempt === 1 ? Buffer.from(requestKey).subarray(-5) : randomBytes(5)
  return `${name || 'vm'}-${nameSuffix(bytes)}`
}

export const exists = (name: string, namespace: string): ApiError =>
  alreadyExists(kind, name, { namespace, hint: 'Choose another name, or delete the VM first' })

/** Unordered. A generator, because the first node is usually enough. */
export function* nodesIn(nodes: Collections['nodes'], namespace: string): Iterable<NodeRecord> {
  for (const { value } of nodes.each()) if (value.namespace === namespace) yield value
}
