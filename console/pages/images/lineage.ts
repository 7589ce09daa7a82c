// The lineage of an image: its rows as a tree, how each was created, and how much it adds.
import type { Image } from '../../../src/api/images/images.ts'
import { bytesAddedBy, type LineageRow } from '../../../src/client/image-lineage.ts'
import { sizeText } from '../../../src/rules/sizes.ts'
import { imagePath } from '../paths.ts'

export const sourceWords = {
  local: 'Local',
  remote: 'Pulled',
  vm: 'Saved from VM',
  generated: 'Empty disk',
  userUpload: 'Uploaded',
}

export interface Branch {
  readonly row: LineageRow<Image>
  readonly children: readonly Branch[]
}

/** Turns rows in depth-first order into a tree. */
export function branchesOf(rows: readonly LineageRow<Image>[]): readonly Branch[] {
  const [first] = rows
  if (!first) return []
  const next = rows.findIndex(({ depth }, index) => index > 0 && depth <= first.depth)
  const end = next < 0 ? rows.length : next
  return [{ row: first, children: branchesOf(rows.slice(1, end)) }, ...branchesOf(rows.slice(end))]
}

export function originOf({ name, image }: LineageRow<Image>): string {
  if (!image) return name.includes('/') ? 'In a registry' : 'Deleted or renamed'
  const { parent, source, sourceType } = image
  if (!parent) {
    if (source === '') return sourceWords[sourceType]
    return sourceType === 'remote'
      ? `Pulled from ${source}`
      : sourceType === 'vm'
        ? `Saved from VM ${source}`
        : sourceWords[sourceType]
  }
  const from = parent.vm === undefined ? 'Copy' : `Saved from VM ${parent.vm}`
  return sourceType === 'vm' && parent.vm === undefined
    ? 'Saved from VM'
    : parent.version === undefined
      ? from
      : `${from}, from version ${parent.version}`
}

/** The bytes stored in addition to the parent's; undefined if unknown. */
export function addedText({ image, depth }: LineageRow<Image>): string | undefined {
  const bytes = image && bytesAddedBy(image)
  if (bytes === undefined) return undefined
  return depth === 0 ? sizeText(bytes) : `+ ${sizeText(bytes)}`
}

export const imagePathOf = ({ name, image, isSelf }: LineageRow<Image>): string | undefined =>
  image && !isSelf ? imagePath('image', name) : undefined
