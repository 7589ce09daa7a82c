// Commands, columns and fields that images and ISOs share.
import type { Image } from '../../../api/images/images.ts'
import * as images from '../../../api/images/images.ts'
import * as isos from '../../../api/images/isos.ts'
import { defined } from '../../../platform/defined.ts'
import { vmsElsewhere } from '../../../rules/ownership.ts'
import { sizeText } from '../../../rules/sizes.ts'
import { type OutputColumn, sizeCell } from '../../output/output.ts'
import type { Field } from '../../output/record.ts'
import { changeCommand, deleteCommand } from '../../record-commands.ts'
import { checkName, described, givenDescription } from './options.ts'

export const imageKind = {
  /** The word of the command, and the name of the path parameter of its operations. */
  word: 'image',
  label: 'Image',
  noun: 'image',
  nouns: 'images',
  sample: 'sonoma',
  sampleCopy: 'sonoma-ci',
  list: images.listImages,
  get: images.getImage,
  copy: images.copyImage,
  describe: images.describeImage,
  download: images.downloadImage,
  remove: images.deleteImage,
} as const

export const isoKind = {
  word: 'iso',
  label: 'ISO',
  noun: 'ISO',
  nouns: 'isos',
  sample: 'ventura.iso',
  sampleCopy: 'installer.iso',
  list: isos.listIsos,
  get: isos.getIso,
  copy: isos.copyIso,
  describe: isos.describeIso,
  download: isos.downloadIso,
  remove: isos.deleteIso,
} as const

export type ImageKind = typeof imageKind | typeof isoKind

export const copyCommand = (kind: ImageKind) =>
  changeCommand({
    description: 'Gives the same content another name. Takes no time and no disk space.',
    arguments: {
      source: { value: 'SOURCE', description: `${kind.noun} to copy`, names: kind.nouns, required: true },
      target: { value: 'NAME', description: 'name of the copy', required: true },
    },
    options: described,
    examples: [
      { line: `svc3 ${kind.word} copy ${kind.sample} ${kind.sampleCopy}`, does: `Copy an ${kind.noun}` },
      {
        line: `svc3 ${kind.word} copy ${kind.sample} ${kind.sampleCopy} -d Nightly`,
        does: 'Set a description for the copy',
      },
    ],
    change: kind.copy,
    body: ({ args, options: { description } }) => ({
      name: checkName(args.target, kind.noun),
      ...defined({ description }),
    }),
    done: (_, source, { args }) => `${kind.label} ${args.target} created as a copy of ${source}.`,
  })

export const describeCommand = (kind: ImageKind) =>
  changeCommand({
    arguments: {
      name: { value: 'NAME', description: `${kind.noun} to describe`, names: kind.nouns, required: true },
      description: { value: 'TEXT', description: 'text of at most 1,024 characters; or use --description' },
    },
    options: described,
    examples: [
      { line: `svc3 ${kind.word} set-description ${kind.sample} Releases`, does: 'Set a description' },
      { line: `svc3 ${kind.word} set-description ${kind.sample} -d Nightly`, does: 'Set it with an option' },
    ],
    change: kind.describe,
    body: ({ args, options }) => ({ description: givenDescription(args.description, options.description) }),
    done: (_, name) => `Description of ${kind.noun} ${name} changed.`,
  })

export const deleteImages = (kind: ImageKind) =>
  deleteCommand({
    description:
      `For the owner of the ${kind.noun}, people of the namespace it was made in, and administrators. Refused while VMs use it. If one of ` +
      'several cannot be deleted, the others still are.',
    examples: [{ line: `svc3 ${kind.word} delete ${kind.sample}`, does: `Delete an ${kind.noun}` }],
    remove: kind.remove,
    scope: 'cluster',
  })

export const columns: readonly OutputColumn<Image>[] = [
  { header: 'NAME', keep: 'always', cell: (image) => image.name },
  { header: 'DESCRIPTION', cell: (image) => image.description },
  { header: 'SIZE', cell: (image) => sizeCell(image.size) },
  { header: 'TYPE', cell: (image) => image.type },
  { header: 'STATE', keep: 'always', cell: (image) => image.state },
  { header: 'UPDATED', terminal: 'room', cell: (image) => ({ time: image.lastUpdatedTimestamp }) },
  { header: 'STORAGE-SIZE', wide: true, cell: (image) => sizeCell(image.spaceUsed) },
  { header: 'SOURCE', wide: true, cell: (image) => image.source },
  { header: 'OWNER', wide: true, cell: (image) => image.owner },
  { header: 'ERROR', wide: true, cell: (image) => image.errorMessage },
]

const usersOf = ({ usedBy, usedElsewhere }: Image): string[] =>
  usedElsewhere === undefined ? usedBy : [...usedBy, vmsElsewhere(usedElsewhere)]

type Version = NonNullable<Image['versions']>[number]

/** `2 of svc-default/build by ana@example.com, adds 12.3 MiB, restorable` */
const versionText = ({ version, vm, by, bytesAdded, restorable }: Version): string =>
  [
    `${version}${vm === undefined ? '' : ` of ${vm}`}${by === undefined ? '' : ` by ${by}`}`,
    ...(bytesAdded === undefined ? [] : [`adds ${sizeText(bytesAdded)}`]),
    ...(restorable ? ['restorable'] : []),
  ].join(', ')

const currentOf = ({ version, versions = [] }: Image): string | undefined => {
  const current = versions.find((each) => each.version === version)
  return current ? versionText(current) : version?.toString()
}

/** Returns the versions before the current one, newest first. */
const earlierOf = ({ version, versions = [] }: Image): string[] =>
  versions
    .filter((each) => each.version !== version)
    .map(versionText)
    .toReversed()

export const fields: readonly Field<Image>[] = [
  { label: 'Name', value: (image) => image.name },
  { label: 'Description', value: (image) => image.description },
  { label: 'State', value: (image) => image.state },
  { label: 'Progress', value: ({ progress }) => progress && `${progress.percent} %` },
  { label: 'Error', value: (image) => image.errorMessage },
  { label: 'Warning', value: (image) => image.warning },
  { label: 'Architecture', value: (image) => image.type },
  { label: 'OS', value: (image) => image.os },
  { label: 'Disk size', value: (image) => sizeCell(image.size) },
  { label: 'Storage size', value: (image) => sizeCell(image.spaceUsed) },
  { label: 'Version', value: currentOf },
  { label: 'Earlier versions', value: earlierOf },
  { label: 'Source', value: (image) => image.source },
  { label: 'Made from', value: ({ parent }) => parent?.image },
  { label: 'Owner', value: (image) => image.owner },
  { label: 'Updated', value: (image) => ({ time: image.lastUpdatedTimestamp }) },
  { label: 'Protected', value: (image) => (image.protected ? 'yes' : undefined) },
  { label: 'Used by', value: usersOf },
  { label: 'Checksum', value: (image) => image.checksum },
]
