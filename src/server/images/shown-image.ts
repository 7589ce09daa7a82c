// An image or ISO as its caller may see it. It belongs to the cluster; the VMs that it was made from or is used by, and
// whoever made it, are known to people of their namespaces and to administrators alone.
import type { Image } from '../../api/images/images.ts'
import { type Caller, maySee, vmsElsewhere } from '../../rules/ownership.ts'
import { diskSize, roughSize } from '../../rules/sizes.ts'
import { type ImageRecord, isProtected } from '../../store/records/fleet-records.ts'
import { descriptionWithout, namespaceOf, versionsOf, vmName } from '../../store/records/image-versions.ts'
import type { Entry } from '../../store/store.ts'

/** VMs, as `namespace/name`. */
interface SeenVms {
  readonly named: readonly string[]
  /** How many others there are. */
  readonly elsewhere: number
}

export function seenVms(vms: readonly string[], caller: Caller): SeenVms {
  const known = new Map([...new Set(vms.map(namespaceOf))].map((namespace) => [namespace, maySee(caller, namespace)]))
  const named = vms.filter((vm) => known.get(namespaceOf(vm)))
  return { named, elsewhere: vms.length - named.length }
}

const maxNamed = 10

/** `svc-ios/a, svc-ios/b and 2 VMs in other namespaces` */
export function vmsText({ named, elsewhere }: SeenVms): string {
  const left = named.length - maxNamed
  const texts = [
    ...(named.length > 0 ? [named.slice(0, maxNamed).join(', ')] : []),
    ...(left > 0 ? [`${left} more`] : []),
    ...(elsewhere > 0 ? [vmsElsewhere(elsewhere)] : []),
  ]
  return texts.join(' and ')
}

interface Shown {
  readonly noun: 'images' | 'isos'
  /** Those that use it. */
  readonly vms: readonly string[]
  readonly caller: Caller
}

export function shownImage({ value, rev }: Entry<ImageRecord>, { noun, vms, caller }: Shown): Image {
  const { sourceNamespace, source = 'built-in', sourceType = 'local' } = value
  const isAtHome = maySee(caller, sourceNamespace)
  // Of what came with svc3 there is nobody to name.
  const isOwnerKnown = isAtHome || value.owner === caller.name || (value.source ?? sourceNamespace) === undefined
  const { named, elsewhere } = seenVms(vms, caller)
  return {
    name: value.name,
    description: shownDescription(value.description, caller),
    type: value.architecture,
    ...(noun === 'images' && { os: value.os ?? 'other' }),
    size: diskSize(value.sizeBytes),
    ...(value.spaceUsedBytes !== undefined && { spaceUsed: roughSize(value.spaceUsedBytes) }),
    state: value.state ?? 'Ready',
    ...progressOf(value, caller),
    ...(value.warning !== undefined && { warning: value.warning }),
    owner: isOwnerKnown ? value.owner : '',
    source: isAtHome || sourceType !== 'vm' ? source : '',
    sourceType,
    ...(isAtHome && sourceNamespace !== undefined && { sourceNamespace }),
    ...(value.content !== undefined && { checksum: value.content }),
    usedBy: [...named],
    ...(elsewhere > 0 && { usedElsewhere: elsewhere }),
    ...(noun === 'images' && { protected: isProtected(value), ...lineageOf(value, caller) }),
    lastUpdatedTimestamp: value.updatedAt,
    resourceVersion: rev,
  }
}

function lineageOf(record: ImageRecord, caller: Caller): Pick<Image, 'version' | 'versions' | 'parent' | 'capture'> {
  const seen = (vm: string | undefined, by?: string): { vm?: string; by?: string } =>
    vm !== undefined && maySee(caller, namespaceOf(vm)) ? { vm, ...(by !== undefined && { by }) } : {}
  const { version = 1, parent, capture } = record
  const { vm: saved, ...from } = parent ?? { image: '' }
  return {
    version,
    versions: versionsOf(record).map(({ version, at, content, vm, by, bytesAdded, restored, kept }) => ({
      version,
      createdAt: at,
      ...(content !== undefined && { checksum: content }),
      ...seen(vm, by),
      ...(bytesAdded !== undefined && { bytesAdded }),
      ...(restored !== undefined && { restored }),
      ...(kept && { restorable: true }),
    })),
    ...(parent && { parent: { ...from, ...seen(saved) } }),
    ...(capture && maySee(caller, capture.vm.namespace) && { capture: { kind: capture.kind, vm: vmName(capture.vm) } }),
  }
}

/** How far it is, and what it waits for, or why there is no more to wait for: that may name VMs and nodes. */
function progressOf(record: ImageRecord, caller: Caller): Pick<Image, 'progress' | 'errorMessage'> {
  const { progress, errorMessage, errorNamespace, capture, sourceNamespace, state } = record
  const isKnown = maySee(caller, capture?.vm.namespace ?? errorNamespace ?? sourceNamespace)
  const hidden = state === 'Updating' ? undefined : errorMessage && 'Failed in another namespace'
  const said = isKnown ? (errorMessage ?? progress?.phase) : hidden
  return {
    ...(progress && { progress: { percent: progress.percent, bytes: progress.bytes } }),
    ...(said !== undefined && { errorMessage: said }),
  }
}

export const shownDescription = (description: string, caller: Caller): string =>
  descriptionWithout(description, (namespace) => !maySee(caller, namespace))
