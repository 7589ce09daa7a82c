// The versions and the origin of an image. They are in its own record, because events are deleted after a time. Names
// of VMs include their namespace.
import type { Image } from '../../api/images/images.ts'
import type { ImageRecord, ImageVersion, KeptVersion, VmRecord } from './fleet-records.ts'

/** Older versions are dropped from the list, so that records stay small. */
const listedVersions = 20
/** The content of this many versions before the current one is kept. */
const keptVersions = 5

/** Versions, oldest first, the current one last. Empty while the first one is being made. */
export function versionsOf(record: ImageRecord): readonly ImageVersion[] {
  const { versions, version = 1, content, recipe, createdAt, updatedAt, parent, spaceUsedBytes } = record
  if (versions) return versions
  if (content === undefined && recipe === undefined) return []
  // A copy shares all of its content with the original.
  const bytesAdded = parent ? 0 : spaceUsedBytes
  const made = { ...(content !== undefined && { content }), ...(bytesAdded !== undefined && { bytesAdded }) }
  return [{ version, at: version === 1 ? createdAt : updatedAt, ...made }]
}

/** Returns the versions with `next` added. The current one becomes a kept one, and the oldest kept one no longer is. */
export function withVersion(record: ImageRecord, next: ImageVersion): readonly ImageVersion[] {
  const before = versionsOf(record)
  const earlier = before.map((each, index): ImageVersion => {
    if (index === before.length - 1) return { ...each, kept: keptOf(record) }
    return without(each, index < before.length - keptVersions, 'kept')
  })
  return [...earlier, next].slice(-listedVersions)
}

const keptOf = ({ sizeBytes, spaceUsedBytes, recipe, warning, os }: ImageRecord): KeptVersion => ({
  sizeBytes,
  ...(spaceUsedBytes !== undefined && { spaceUsedBytes }),
  ...(recipe !== undefined && { recipe }),
  ...(warning !== undefined && { warning }),
  ...(os !== undefined && { os }),
})

/** Contents of earlier versions that are kept. */
export const keptContents = ({ versions = [] }: ImageRecord): string[] =>
  versions.flatMap(({ content, kept }) => (kept && content !== undefined ? content : []))

/** Restores a kept version as the next version. */
export function restoredTo(
  record: ImageRecord,
  { version, content, vm, kept }: KeptImageVersion,
  at: string,
): ImageRecord {
  const rest = without(record, true, 'content', 'spaceUsedBytes', 'recipe', 'warning', 'os', 'errorMessage')
  const next = (record.version ?? 1) + 1
  const made = content !== undefined && { content }
  const restored = { version: next, at, ...made, ...(vm !== undefined && { vm }), restored: version, bytesAdded: 0 }
  return { ...rest, ...kept, ...made, version: next, versions: withVersion(record, restored), updatedAt: at }
}

export type KeptImageVersion = ImageVersion & Required<Pick<ImageVersion, 'kept'>>
export const isKept = (version: ImageVersion): version is KeptImageVersion => version.kept !== undefined

export const vmName = ({ namespace, name }: { namespace: string; name: string }): string => `${namespace}/${name}`

/** The origin of an image that is saved from a VM: the version that the VM was deployed from. */
export function parentOfSaved(vm: VmRecord, image: ImageRecord | undefined): NonNullable<Image['parent']> {
  const { shape, imageContent, imageReference } = vm
  const found = image && versionsOf(image).find(({ content }) => content === imageContent)
  const isOurs = imageReference === undefined
  return {
    image: imageReference ?? shape.image,
    ...(isOurs && found && { version: found.version }),
    vm: vmName(vm),
  }
}

export const namespaceOf = (vm: string): string => vm.slice(0, vm.indexOf('/'))

/** The default description of a saved image. */
export const savedFrom = ({ namespace, name }: { namespace: string; name: string }): string =>
  `Saved from VM ${name} in namespace ${namespace}.`
const savedForm = /Saved from VM [a-z0-9.-]{1,63} in namespace ([a-z0-9-]{1,63})\./g

/** Hides VMs in namespaces that the caller may not see. Descriptions of copies contain that of the original. */
export const descriptionWithout = (description: string, isHidden: (namespace: string) => boolean): string =>
  description.replace(savedForm, (text, namespace: string) =>
    isHidden(namespace) ? 'Saved from a VM in another namespace.' : text,
  )

/** Removes names that belong to deleted namespaces, so that a new namespace of the same name does not get them. */
export function withoutNamesOf(record: ImageRecord, isGone: (namespace: string) => boolean): ImageRecord {
  const { sourceNamespace = '', errorNamespace = sourceNamespace, versions, parent } = record
  const kept = <V extends { readonly vm?: string; readonly by?: string }>(each: V): V =>
    without(each, isGone(namespaceOf(each.vm ?? '')), 'vm', 'by')
  const isSourceGone = isGone(sourceNamespace)
  const next = {
    ...record,
    description: descriptionWithout(record.description, isGone),
    ...(isSourceGone && record.sourceType === 'vm' && { source: '' }),
    ...(versions && { versions: versions.map(kept) }),
    ...(parent && { parent: kept(parent) }),
  }
  return without(
    without(next, isSourceGone, 'sourceNamespace'),
    isGone(errorNamespace),
    'errorMessage',
    'errorNamespace',
  )
}

const without = <T extends object>(from: T, isMeant: boolean, ...fields: readonly (keyof T)[]): T =>
  isMeant ? (Object.fromEntries(Object.entries(from).filter(([name]) => !fields.includes(name as keyof T))) as T) : from
