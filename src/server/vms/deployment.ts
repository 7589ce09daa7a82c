// Deploys a VM: from the request to the record, then waits until it runs, fails or times out. The record is the only
// state, so the VM comes up even if the server restarts.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Architecture } from '../../api/architecture.ts'
import { ApiError, alreadyExists, invalid, notFound } from '../../api/errors.ts'
import type { ImageStart, VmDeployment } from '../../api/vms/vm-deployment.ts'
import type { VmShape } from '../../api/vms/vm-shape.ts'
import type { Condition } from '../../api/vms/vms.ts'
import { timestamp } from '../../platform/clock.ts'
import { parseTtl, timeLeft } from '../../rules/durations.ts'
import { isImageReference } from '../../rules/image-reference.ts'
import { defaultNamespace, nameSuffix } from '../../rules/names.ts'
import { takesVms } from '../../rules/ownership.ts'
import { type Demand, demandOf, neverFits } from '../../rules/placement.ts'
import { impossible } from '../../rules/placement-reasons.ts'
import { parseReservedPorts } from '../../rules/ports.ts'
import type { Collections } from '../../store/records/collections.ts'
import {
  type ImageRecord,
  isDeployable,
  type NodeRecord,
  type VmConfigRecord,
  type VmRecord,
} from '../../store/records/fleet-records.ts'
import { releaseQuota } from '../../store/records/quotas.ts'
import { lateDeployment, removeVm } from '../../store/records/vms.ts'
import { type Entry, ignoreLost, isFault, StoreError } from '../../store/store.ts'
import { createInside } from '../gate/namespace.ts'
import type { VmSecret } from '../nodes/desired.ts'
import { WaitedTooLong, type Waits } from '../nodes/waits.ts'
import { type RegistryServices, referenceOf } from '../remotes/registries.ts'
import { findRegistryImage } from '../remotes/registry-images.ts'
import { contentNow } from './base-image.ts'
import { deploymentProblems } from './deployment-problems.ts'
import { type InterruptionServices, interruptionsOf, throwIfInterrupted } from './interruption.ts'
import { metadataOf } from './metadata.ts'
import { takeQuota } from './quota.ts'
import { shapeOf, shapeProblems } from './shape.ts'

const kind = 'vms'
const defaultTimeoutMinutes = 10
/** An image that is being committed to changes every second or so. */
const maxLooks = 10

interface Records {
  readonly collections: Collections
}
export type DeployServices = Records & Omit<RegistryServices, 'collections'>
export interface AwaitServices extends InterruptionServices, Records {
  /** For those who wait for a VM. */
  readonly waits: Waits<VmRecord>
}

interface Request {
  readonly namespace: string
  readonly body: VmDeployment
  readonly owner: string
  readonly now: Date
  readonly requestKey: string | undefined
  /** Somebody waits for the answer. */
  readonly isAwaited: boolean
  /** What the server is set to, for a body that does not say. */
  readonly imageStart?: ImageStart
  /** Does not wait for the quota. */
  readonly isRefusedOverQuota?: boolean
  /** That nobody can ask for. */
  readonly ownLabels?: VmRecord['labels']
}

export const timeoutMsOf = ({ timeout }: VmDeployment): number =>
  Math.round((timeout || defaultTimeoutMinutes) * 60_000)

/** Resolves and validates a request, before anything is written. */
export function planVm(
  services: Records,
  request: Request,
): { record: Omit<VmRecord, 'name' | 'uid'>; secret: VmSecret | undefined } {
  const { namespace, body } = request
  const space = services.collections.namespaces.get('', namespace)
  if (space && !takesVms(space.value))
    throw new ApiError('Invalid', `Namespace ${namespace} is reserved for other workloads`, {
      kind: 'namespaces',
      name: namespace,
      hint: 'Deploy into another namespace: svc3 namespace list',
    })
  const { shape, os } = checkedShape(services, namespace, body)
  const { record, secret } = recordOf(request, shape)
  return { record: { ...record, ...(os !== undefined && { os }) }, secret }
}

/** Writes the record, or refuses. The same request again (by its key) finds its own record, and has not `written` it. */
export async function createVm(
  services: DeployServices,
  request: Request,
  written: (entry: Entry<VmRecord>) => Promise<void>,
): Promise<Entry<VmRecord>> {
  for (let look = 1; ; look++) {
    try {
      return await createAsSeen(services, request, written)
    } catch (error) {
      if (!(error instanceof ImageMoved) || look === maxLooks) throw error
      await services.collections.images.moved(error.image)
    }
  }
}

/** The image is not what was looked at any more: it may be gone, locked by a commit, or have other content. */
class ImageMoved extends StoreError {
  readonly image: Entry<ImageRecord>

  constructor(image: Entry<ImageRecord>, cause: unknown) {
    super('Conflict', `Image ${image.value.name} changed during the deployment: try again`, { cause })
    this.image = image
  }
}

async function createAsSeen(
  services: DeployServices,
  request: Request,
  written: (entry: Entry<VmRecord>) => Promise<void>,
): Promise<Entry<VmRecord>> {
  const { namespace, body, requestKey } = request
  const { record, secret } = planVm(services, request)
  // Whoever commits into an image locks it first and then looks for VMs: one of the two always sees the other.
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
        // A request that is repeated is told that its VM is there, and not that this one has the quota.
        if (services.collections.vms.get(namespace, name)) throw taken(name)
        await takeQuota(services.collections, planned)
      }
      const entry = await write(services, planned, { secret, image })
      await written(entry)
      return entry
    } catch (error) {
      const found = services.collections.vms.get(namespace, name)
      // What the store did not answer for may be there: then the sweep finds whose it is.
      if (request.isRefusedOverQuota && found?.value.uid !== planned.uid && isRefusal(error))
        await releaseQuota(services.collections, namespace, planned.uid)
      if (!isFault(error, 'AlreadyExists')) throw error
      if (found && requestKey !== undefined && found.value.requestKey === requestKey) return found
      const isGenerated = !body.name || body.shouldGenerateName === true
      if (!isGenerated || attempt === 20) throw exists(name, namespace)
    }
  }
}

/** Surely not written. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ApiError || isFault(error, 'AlreadyExists') || isFault(error, 'Conflict')

const taken = (name: string): StoreError => new StoreError('AlreadyExists', `VM ${name} exists`)

/** Refuses at once what would wait forever: no node could hold it even when empty. */
export function assertPossible(
  nodes: Collections['nodes'],
  namespace: string,
  demand: Demand,
  { cpu, vmConfig }: Pick<VmDeployment, 'cpu' | 'vmConfig'>,
): void {
  const never = neverFits(demand, nodesIn(nodes, namespace))
  if (never) throw impossible(never, demand, namespace, { isDefaultCpu: !cpu && !vmConfig })
}

/** In no order: mostly the first one will do. */
function* nodesIn(nodes: Collections['nodes'], namespace: string): Iterable<NodeRecord> {
  for (const { value } of nodes.each()) if (value.namespace === namespace) yield value
}

/** Secrets first: a VM that is there has what it needs. A secret without its VM is swept by a controller. */
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
    // What the store did not answer for may be there, and needs it; a secret without its VM is swept.
    const kept = secret && isRefusal(error) ? collections.vmSecrets.get('', uid) : undefined
    if (kept) await collections.vmSecrets.delete(kept).catch(ignoreLost)
    throw image && isFault(error, 'Conflict') ? new ImageMoved(image, error) : error
  }
}

function checkedShape(
  { collections }: Records,
  namespace: string,
  body: VmDeployment,
): { readonly shape: VmShape; readonly os: ImageRecord['os'] } {
  const config = body.vmConfig ? configFor(collections.vmConfigs, namespace, body.vmConfig) : undefined
  if (body.vmConfig && !config) throw notFound('vmconfigs', body.vmConfig, { namespace })
  const imageName = body.image || config?.shape.image
  if (!imageName) {
    const message = 'Specify image or vmConfig'
    throw new ApiError('BadRequest', message, {
      causes: [{ field: 'image', reason: 'FieldValueRequired', message }],
      hint: `Run svc3 image list -n ${namespace} or svc3 vm-config list -n ${namespace} to see what you can deploy`,
    })
  }
  const image = findImage(collections.images, imageName)
  if (image.record) assertReady(image.record, 'image')
  const shape = shapeOf(body, image, config?.shape)
  if (shape.iso !== undefined) {
    const iso = collections.isos.get('', shape.iso)?.value
    if (!iso) throw notFound('isos', shape.iso)
    assertReady(iso, 'iso')
  }
  if (shape.node !== undefined && collections.nodes.get('', shape.node)?.value.namespace !== namespace)
    throw notFound('nodes', shape.node, { namespace })
  return { shape, os: image.record?.os }
}

/** Clients make configurations in the default namespace, whatever namespace they deploy into. */
export const configFor = (
  configs: Collections['vmConfigs'],
  namespace: string,
  name: string,
): VmConfigRecord | undefined => (configs.get(namespace, name) ?? configs.get(defaultNamespace, name))?.value

function assertReady(record: ImageRecord, word: 'image' | 'iso'): void {
  if (isDeployable(record)) return
  const what = word === 'image' ? 'Image' : 'ISO'
  throw new ApiError('Conflict', `${what} ${record.name} is ${record.state} and cannot be deployed yet`, {
    kind: `${word}s`,
    name: record.name,
    hint: `Run svc3 ${word} list ${record.name} -o wide to see its progress`,
  })
}

/** What the names stand for now, whatever becomes of them later. */
async function contentOf(
  services: DeployServices,
  namespace: string,
  { image, iso, architecture }: VmShape,
): Promise<Pick<VmRecord, 'imageContent' | 'imageRecipe' | 'imageReference' | 'isoContent' | 'os'>> {
  const { images, isos } = services.collections
  if (isImageReference(image)) {
    const found = await findRegistryImage(services, referenceOf(image, 'pull'), { namespace, architecture })
    return { imageReference: found.pinned, ...(found.os !== undefined && { os: found.os }) }
  }
  const isoContent = iso === undefined ? undefined : isos.get('', iso)?.value.content
  return { ...contentNow(images.get('', image)?.value), ...(isoContent !== undefined && { isoContent }) }
}

interface NamedImage {
  readonly name: string
  readonly architecture: Architecture
  /** Undefined: it is in a registry. */
  readonly record: ImageRecord | undefined
}

/** Images of registries are for arm64 (docs/spec.md R35); whether there is one, the registry is asked later. */
export function findImage(images: Collections['images'], name: string): NamedImage {
  if (isImageReference(name)) return { name: referenceOf(name, 'pull').text, architecture: 'arm64', record: undefined }
  const record = images.get('', name)?.value
  if (record) return { name: record.name, architecture: record.architecture, record }
  throw notFound('images', name)
}

function recordOf(
  { namespace, body, owner, now, requestKey, isAwaited, imageStart, ownLabels }: Request,
  shape: VmShape,
): { record: Omit<VmRecord, 'name' | 'uid'>; secret: VmSecret | undefined } {
  const causes = [...shapeProblems(shape), ...deploymentProblems(body)]
  if (causes.length > 0) throw invalid(kind, causes, 'Correct the fields in details.causes')

  const { metadata } = metadataOf(body)
  const keys = Object.keys(metadata)
  const ttlSeconds = body.ttl ? parseTtl(body.ttl) : undefined
  const secret: VmSecret | undefined =
    keys.length > 0 || body.userdata ? { metadata, ...(body.userdata && { userdata: body.userdata }) } : undefined
  const later = (seconds: number): string => timestamp(new Date(now.getTime() + seconds * 1_000))
  const record: Omit<VmRecord, 'name' | 'uid'> = {
    namespace,
    owner,
    createdAt: timestamp(now),
    times: { requestedMs: now.getTime() },
    ...(requestKey !== undefined && { requestKey }),
    shape,
    reservedPorts: parseReservedPorts(body.reservedPorts ?? '').ports,
    labels: { ...body.labels, ...ownLabels },
    metadataKeys: keys,
    ...(ttlSeconds !== undefined && { expiresAt: later(ttlSeconds) }),
    ...(isAwaited && { awaitedUntil: later(timeoutMsOf(body) / 1_000) }),
    ...(body.cold === true && { isCold: true }),
    ...((body.imageStart ?? imageStart) === 'lazy' && { imageStart: 'lazy' }),
    ...(body.priority && { priority: body.priority }),
    ...((body.noWarm === true || body.userdata) && { noWarm: true }),
    desired: { generation: 1, power: 'running', diskGeneration: 1, action: 'deploy' },
    observed: { generation: 0, power: 'pending', hasRun: false },
    conditions: [],
  }
  return { record, secret }
}

/** A generated name stands for the request where it has a key, so that the same request finds its VM again. */
function nameFor({ name, shouldGenerateName }: VmDeployment, requestKey: string | undefined, attempt: number): string {
  if (name && !shouldGenerateName) return name
  const bytes = requestKey !== undefined && attempt === 1 ? Buffer.from(requestKey).subarray(-5) : randomBytes(5)
  return `${name || 'vm'}-${nameSuffix(bytes)}`
}

export const exists = (name: string, namespace: string): ApiError =>
  alreadyExists(kind, name, { namespace, hint: 'Choose another name, or delete the VM first' })

/** Waits until the VM runs. One that fails or is late is gone, with everything it had, when this throws. */
export async function awaitDeployment(
  services: AwaitServices,
  created: Entry<VmRecord>,
  timeoutMs: number,
  hurry?: AbortSignal,
): Promise<Entry<VmRecord>> {
  const { key, value } = created
  const { name, namespace, uid } = value
  const about = { kind, name }
  let failure: string | undefined
  let unfit: Condition | undefined
  const isGone = (entry: Entry<VmRecord> | undefined): boolean => entry?.value.uid !== uid
  try {
    const running = await services.waits.until(
      key,
      (entry) => {
        if (!entry || isGone(entry)) return null
        failure = entry.value.failure
        // It may have been stopped since, when an earlier try of this request brought it up. One that is up, but whose
        // agent has not said yet that it is done (a new one found it), is busy: the next request would be refused.
        if (entry.value.observed.hasRun && entry.value.observed.generation > 0) return entry
        unfit = hurry && unfitFor(entry.value)
        if (unfit !== undefined) throw fitsNowhere(services.collections, value, unfit)
        return undefined
      },
      { ms: timeoutMs, interruptions: interruptionsOf(services), signal: hurry },
    )
    if (running) return running
  } catch (error) {
    throwIfInterrupted(services, value)
    const isLate = error instanceof WaitedTooLong
    if (!isLate && hurry?.aborted !== true && unfit === undefined) throw error
    const entry = services.collections.vms.at(key)
    if (entry && !isGone(entry) && entry.value.observed.hasRun) return entry
    const why = entry && !isGone(entry) ? reasonsOf(entry.value) : ''
    const next = nextStep(services.collections, value, entry && unfitFor(entry.value))
    if (entry && !isGone(entry)) await removeVm(services.collections, entry, unfit?.message ?? lateDeployment)
    await services.waits.until(key, (left) => isGone(left) || undefined, { ms: 60_000 }).catch(() => null)
    if (unfit !== undefined) throw error
    if (!isLate) throw late504(value, `while its client waited${why}`, next)
    throw late504(value, `within ${timeLeft(timeoutMs / 1_000)}${why}`, next)
  }
  if (failure === lateDeployment) throw late504(value, 'in time', nextStep(services.collections, value))
  if (failure !== undefined) {
    // An agent says it in a sentence about the VM.
    const outcome = /^Could not /.test(failure) ? `c${failure.slice(1)}` : `could not be deployed: ${failure}`
    throw new ApiError('InternalError', `VM ${name} ${outcome}`, {
      ...about,
      hint: `The VM was removed. Run svc3 node list -n ${namespace} to check the nodes`,
    })
  }
  throw new ApiError('Conflict', `VM ${name} in ${namespace} was deleted during its deployment`, {
    ...about,
    hint: 'Deploy it again',
  })
}

/** For a VM that got no node: by what was in its way. */
function nextStep({ nodes }: Collections, { namespace, reservedPorts }: VmRecord, unfit?: Condition): string {
  if (unfit?.reason === 'OverQuota') return `Run svc3 quota show -n ${namespace} to see what is in use`
  const others = reservedPorts.length > 0 ? ', reserve other --ports' : ''
  for (const _ of nodesIn(nodes, namespace)) return `Run svc3 node list -n ${namespace} to see free capacity${others}`
  return `Run svc3 node namespace NODE ${namespace} to give ${namespace} a node`
}

const late504 = ({ name }: VmRecord, when: string, next: string): ApiError =>
  new ApiError('Timeout', `VM ${name} was not deployed ${when}`, {
    kind,
    name,
    hint: `The VM was removed. ${next}, or set a longer --timeout`,
  })

/** What the scheduler said of a VM that has no node. */
const unfitFor = ({ place, conditions }: VmRecord): Condition | undefined =>
  place ? undefined : conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')

const fitsNowhere = (collections: Collections, vm: VmRecord, unfit: Condition): ApiError => {
  const { message, reason } = unfit
  const { name } = vm
  return new ApiError(
    'Conflict',
    `VM ${name} ${reason === 'OverQuota' ? 'is over the quota' : 'fits on no node'} now. ${message}`,
    {
      kind,
      name,
      ...(reason === 'NoFreeCores' && { causes: [{ field: 'cpu', reason: 'FieldValueNotSupported', message }] }),
      hint: `The VM was removed. ${nextStep(collections, vm, unfit)}`,
    },
  )
}

/** Why a VM is not running yet, as far as is known. */
function reasonsOf({ conditions, observed }: VmRecord): string {
  const scheduled = conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')
  if (scheduled) return `. ${scheduled.message}`
  return observed.operation ? `: ${observed.operation.phase}` : ''
}
