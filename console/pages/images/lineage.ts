// The lineage of an image as a page tells it: rows that stand below what they were made from, each with how it was made. Pure.
import type { Image } from '../../../src/api/images/images.ts'
import { bytesAddedBy, type LineageRow } from '../../../src/client/image-lineage.ts'
import { sizeText } from '../../../src/rules/sizes.ts'
import { imagePath } from '../paths.ts'
import { imageTexts as words } from './texts.ts'

export interface Branch {
  readonly row: LineageRow<Image>
  readonly children: readonly Branch[]
}

/** Rows in the order of a tree, as that tree. */
export function branchesOf(rows: readonly LineageRow<Image>[]): readonly Branch[] {
  const [first] = rows
  if (!first) return []
  const next = rows.findIndex(({ depth }, index) => index > 0 && depth <= first.depth)
  const end = next < 0 ? rows.length : next
  return [{ row: first, children: branchesOf(rows.slice(1, end)) }, ...branchesOf(rows.slice(end))]
}

export function originOf({ name, image }: LineageRow<Image>): string {
  if (!image) return name.includes('/') ? words.inRegistry : words.notHere
  const { parent, source, sourceType } = image
  if (!parent)
    return source === '' || sourceType === 'local' ? words.sources[sourceType] : words.from(sourceType, source)
  const from = parent.vm === undefined ? words.copiedOf : words.savedOf(parent.vm)
  return sourceType === 'vm' && parent.vm === undefined
    ? words.sources.vm
    : parent.version === undefined
      ? from
      : words.ofVersion(from, parent.version)
}

/** What it takes beside what it was made from; undefined: not known. */
export function addedText({ image, depth }: LineageRow<Image>): string | undefined {
  const bytes = image && bytesAddedBy(image)
  if (bytes === undefined) return undefined
  return depth === 0 ? sizeText(bytes) : words.adds(sizeText(bytes))
}

export const pathOf = ({ name, image, isSelf }: LineageRow<Image>): string | undefined =>
  image && !isSelf ? imagePath('image', name) : undefined
