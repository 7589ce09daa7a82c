// The versions of an image and what it was made from, kept in its own record: events are forgotten, these are not.
import type { Image } from '../../api/images/images.ts'
import type { ImageRecord, ImageVersion, VmRecord } from './fleet-records.ts'

/** The oldest go: a record stays small however often somebody commits. */
const keptVersions = 20

/** Oldest first, the current one last. None while the first one is being made. */
export function versionsOf(record: ImageRecord): readonly ImageVersion[] {
  const { versions, version = 1, content, recipe, createdAt, updatedAt } = record
  if (versions) return versions
  if (content === undefined && recipe === undefined) return []
  return [{ version, at: version === 1 ? createdAt : updatedAt, ...(content !== undefined && { content }) }]
}

export const withVersion = (before: readonly ImageVersion[], next: ImageVersion): readonly ImageVersion[] =>
  [...before, next].slice(-keptVersions)

export const vmName = ({ namespace, name }: { namespace: string; name: string }): string => `${namespace}/${name}`

/** What an image that is saved from a VM comes from: the version that the VM was deployed from, whatever came later. */
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
