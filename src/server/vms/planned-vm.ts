// Resolves and validates a request for a VM: its shape, from a configuration and the request, and its record.
import type { Architecture } from '../../api/architecture.ts'
import { ApiError, conflict, invalid, notFound } from '../../api/errors.ts'
import type { ImageStart, VmDeployment } from '../../api/vms/vm-deployment.ts'
import type { VmShape } from '../../api/vms/vm-shape.ts'
import { timestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
import { parseTtl } from '../../rules/durations.ts'
import { isImageReference } from '../../rules/image-reference.ts'
import { defaultNamespace } from '../../rules/names.ts'
import { takesVms } from '../../rules/ownership.ts'
import { parseReservedPorts } from '../../rules/ports.ts'
import type { Collections } from '../../store/records/collections.ts'
import {
  type ImageRecord,
  isDeployable,
  type VmConfigRecord,
  type VmRecord,
} from '../../store/records/fleet-records.ts'
import type { VmSecret } from '../nodes/desired.ts'
import { referenceOf } from '../remotes/registries.ts'
import { deploymentProblems } from './deployment-problems.ts'
import { metadataOf } from './metadata.ts'
import { shapeOf, shapeProblems } from './shape.ts'

const defaultTimeoutMinutes = 10

export interface VmRequest {
  readonly namespace: string
  readonly body: VmDeployment
  readonly owner: string
  readonly now: Date
  readonly requestKey: string | undefined
  /** The caller waits until the VM runs. */
  readonly isAwaited: boolean
  readonly imageStart?: ImageStart
  readonly isRefusedOverQuota?: boolean
  readonly ownLabels?: VmRecord['labels']
}

interface PlannedVm {
  readonly record: Omit<VmRecord, 'name' | 'uid'>
  readonly secret: VmSecret | undefined
}

export const timeoutMsOf = ({ timeout }: VmDeployment): number =>
  Math.round((timeout || defaultTimeoutMinutes) * 60_000)

/** Resolves and validates a request, without writing records. */
export function planVm(services: { readonly collections: Collections }, request: VmRequest): PlannedVm {
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
  return { record: { ...record, ...defined({ os }) }, secret }
}

function checkedShape(
  { collections }: { readonly collections: Collections },
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

/** Clients of Orka create configurations in the default namespace, even if they deploy into another one. */
export const configFor = (
  configs: Collections['vmConfigs'],
  namespace: string,
  name: string,
): VmConfigRecord | undefined => (configs.get(namespace, name) ?? configs.get(defaultNamespace, name))?.value

function assertReady(record: ImageRecord, command: 'image' | 'iso'): void {
  const { name, state } = record
  if (isDeployable(record)) return
  const hint = `Run svc3 ${command} list ${name} -o wide to see its progress`
  throw conflict(`${command}s`, name, `is ${state} and cannot be deployed yet`, hint)
}

interface NamedImage {
  readonly name: string
  readonly architecture: Architecture
  /** Undefined for an image in a registry. */
  readonly record: ImageRecord | undefined
}

/** Images in registries are for arm64 (docs/spec.md R35). Does not check whether the registry has the image. */
export function findImage(images: Collections['images'], name: string): NamedImage {
  if (isImageReference(name)) return { name: referenceOf(name, 'pull').text, architecture: 'arm64', record: undefined }
  const record = images.get('', name)?.value
  if (record) return { name: record.name, architecture: record.architecture, record }
  throw notFound('images', name)
}

function recordOf(
  { namespace, body, owner, now, requestKey, isAwaited, imageStart, ownLabels }: VmRequest,
  shape: VmShape,
): PlannedVm {
  const causes = [...shapeProblems(shape, body), ...deploymentProblems(body)]
  if (causes.length > 0) throw invalid('vms', causes, 'Correct the fields in details.causes')

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
    ...defined({ requestKey }),
    shape,
    reservedPorts: parseReservedPorts(body.reservedPorts ?? '').ports,
    labels: { ...body.labels, ...ownLabels },
    metadataKeys: keys,
    ...defined({
      expiresAt: ttlSeconds === undefined ? undefined : later(ttlSeconds),
      awaitedUntil: isAwaited ? later(timeoutMsOf(body) / 1_000) : undefined,
    }),
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
