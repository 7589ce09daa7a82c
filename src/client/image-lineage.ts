// The ancestors and descendants of an image, from the records of images alone, as a tree in display order.
import type { Image } from '../api/images/images.ts'

type Known = Pick<Image, 'name' | 'parent' | 'versions'>

export interface LineageRow<T> {
  /** The name of the image, as in the record of its child if the image was deleted or is in a registry. */
  readonly name: string
  /** Undefined if the cluster does not have this image. */
  readonly image?: T | undefined
  /** 0 for the oldest ancestor. */
  readonly depth: number
  readonly isSelf: boolean
}

export interface Lineage<T> {
  /** Ancestors, oldest first, then the image, then its descendants, each after its parent. */
  readonly rows: readonly LineageRow<T>[]
  /** Number of descendants that are not in `rows`. */
  readonly more: number
}

const maxAncestors = 20
const maxDescendants = 50

export function lineageOf<T extends Known>(image: T, images: readonly T[]): Lineage<T> {
  const byName = new Map(images.map((each) => [each.name, each]))
  const ancestors: Omit<LineageRow<T>, 'depth'>[] = []
  // Names can form a cycle: an image may be deleted, and its name given to an image made from its descendant.
  const seen = new Set([image.name])
  for (let name = image.parent?.image; name !== undefined && ancestors.length < maxAncestors; ) {
    if (seen.has(name)) break
    seen.add(name)
    const found = byName.get(name)
    ancestors.unshift({ name, image: found, isSelf: false })
    name = found?.parent?.image
  }
  const rows: LineageRow<T>[] = ancestors.map((row, depth) => ({ ...row, depth }))
  rows.push({ name: image.name, image, depth: rows.length, isSelf: true })
  const children = Map.groupBy(
    images.filter((each) => each.parent),
    ({ parent }) => parent?.image ?? '',
  )
  let descendants = 0
  const add = (name: string, depth: number): void => {
    for (const child of children.get(name) ?? []) {
      if (seen.has(child.name)) continue
      seen.add(child.name)
      descendants += 1
      if (descendants <= maxDescendants) rows.push({ name: child.name, image: child, depth, isSelf: false })
      add(child.name, depth + 1)
    }
  }
  add(image.name, rows.length)
  return { rows, more: Math.max(0, descendants - maxDescendants) }
}

/** The bytes that all versions of an image added. Undefined if they are unknown for one of them. */
export function bytesAddedBy({ versions = [] }: Pick<Image, 'versions'>): number | undefined {
  if (versions.length === 0) return undefined
  let sum = 0
  for (const { bytesAdded } of versions) {
    if (bytesAdded === undefined) return undefined
    sum += bytesAdded
  }
  return sum
}
