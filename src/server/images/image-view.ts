// Renders an image or ISO for a caller. It belongs to the cluster, but only administrators and users of a namespace see
// which VMs of the namespace it was made from or is used by, who made it, and what clients keep with it.
import type { Image } from '../../api/images/images.ts'
import { defined } from '../../platform/defined.ts'
import { type Caller, isOwnerOrMember, maySee, vmsElsewhere } from '../../rules/ownership.ts'
import { diskSize, roughSize } from '../../rules/sizes.ts'
import { type ImageRecord, isProtected } from '../../store/records/fleet-records.ts'
import { descriptionWithout, namespaceOf, versionsOf, vmName } from '../../store/records/image-versions.ts'
import type { RecordMeta } from '../../store/records/record-meta.ts'
import type { Entry } from '../../store/store.ts'

interface VisibleVms {
  /** As `namespace/name`. */
  readonly named: readonly string[]
  /** The number of VMs in namespaces that the caller may not see. */
  readonly elsewhere: number
}

export function visibleVms(vms: readonly string[], caller: Caller): VisibleVms {
  const known = new Map([...new Set(vms.map(namespaceOf))].map((namespace) => [namespace, maySee(caller, namespace)]))
  const named = vms.filter((vm) => known.get(namespaceOf(vm)))
  return { named, elsewhere: vms.length - named.length }
}

const maxNamed = 10

/** For example `svc-ios/a, svc-ios/b and 2 VMs in other namespaces`. */
export function vmsText({ named, elsewhere }: VisibleVms): string {
  const left = named.length - maxNamed
  const texts = [
    ...(named.length > 0 ? [named.slice(0, maxNamed).join(', ')] : []),
    ...(left > 0 ? [`${left} more`] : []),
    ...(elsewhere > 0 ? [vmsElsewhere(elsewhere)] : []),
  ]
  return texts.join(' and ')
}

interface ViewOptions {
  readonly noun: 'images' | 'isos'
  readonly vms: readonly string[]
  readonly caller: Caller
}

export function imageView({ value, rev }: Entry<ImageRecord>, { noun, vms, caller }: ViewOptions): Image {
  const { sourceNamespace, source = 'built-in', sourceType = 'local' } = value
  const isInOwnNamespace = maySee(caller, sourceNamespace)
  const { named, elsewhere } = visibleVms(vms, caller)
  return {
    name: value.name,
    description: visibleDescription(value.description, caller),
    type: value.architecture,
    ...(noun === 'images' && { os: value.os ?? 'other' }),
    size: diskSize(value.sizeBytes),
    ...(value.spaceUsedBytes !== undefined && { spaceUsed: roughSize(value.spaceUsedBytes) }),
    state: value.state ?? 'Ready',
    ...progressOf(value, caller),
    ...defined({ warning: value.warning, checksum: value.content }),
    owner: isOwnerVisible(value, caller) ? value.owner : '',
    source: isInOwnNamespace || sourceType !== 'vm' ? source : '',
    sourceType,
    ...(isInOwnNamespace && sourceNamespace !== undefined && { sourceNamespace }),
    usedBy: [...named],
    ...(elsewhere > 0 && { usedElsewhere: elsewhere }),
    ...(noun === 'images' && { protected: isProtected(value), ...lineageOf(value, caller) }),
    lastUpdatedTimestamp: value.updatedAt,
    resourceVersion: rev,
  }
}

/** Built-in images have no owner to hide. */
const isOwnerVisible = (image: ImageRecord, caller: Caller): boolean =>
  isOwnerOrMember(caller, image) || (image.source ?? image.sourceNamespace) === undefined

/** Labels, annotations, finalizers, owners and managers of fields are hidden where the owner is. */
export function visibleMeta(image: ImageRecord, caller: Caller): RecordMeta | undefined {
  const { meta } = image
  return meta && !isOwnerVisible(image, caller)
    ? defined({ generation: meta.generation, deletion: meta.deletion })
    : meta
}

function lineageOf(record: ImageRecord, caller: Caller): Pick<Image, 'version' | 'versions' | 'parent' | 'capture'> {
  const visible = (vm: string | undefined, by?: string): { vm?: string; by?: string } =>
    vm !== undefined && maySee(caller, namespaceOf(vm)) ? { vm, ...(by !== undefined && { by }) } : {}
  const { version = 1, parent, capture } = record
  const { vm: saved, ...from } = parent ?? { image: '' }
  return {
    version,
    versions: versionsOf(record).map(({ version, at, content, vm, by, bytesAdded, restored, kept }) => ({
      version,
      createdAt: at,
      ...defined({ checksum: content, bytesAdded, restored }),
      ...visible(vm, by),
      ...(kept && { restorable: true }),
    })),
    ...(parent && { parent: { ...from, ...visible(saved) } }),
    ...(capture && maySee(caller, capture.vm.namespace) && { capture: { kind: capture.kind, vm: vmName(capture.vm) } }),
  }
}

/** The phase and the error may name VMs and nodes, so they are hidden from other namespaces. */
function progressOf(record: ImageRecord, caller: Caller): Pick<Image, 'progress' | 'errorMessage'> {
  const { progress, errorMessage, errorNamespace, capture, sourceNamespace, state } = record
  const isKnown = maySee(caller, capture?.vm.namespace ?? errorNamespace ?? sourceNamespace)
  const hidden = state === 'Updating' ? undefined : errorMessage && 'Failed in another namespace'
  const message = isKnown ? (errorMessage ?? progress?.phase) : hidden
  const shown = progress && { percent: progress.percent, bytes: progress.bytes }
  return defined({ progress: shown, errorMessage: message })
}

export const visibleDescription = (description: string, caller: Caller): string =>
  descriptionWithout(description, (namespace) => !maySee(caller, namespace))
