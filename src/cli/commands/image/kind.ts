// What differs between the commands of images and those of ISOs.
import type { Image } from '../../../api/images/images.ts'
import * as api from '../../../api/images/images.ts'
import type { Operation } from '../../../api/operation.ts'
import type { Client, ListOperation } from '../../../client/client.ts'
import { vmsElsewhere } from '../../../rules/ownership.ts'
import { sizeText } from '../../../rules/sizes.ts'
import { type Column, sizeCell } from '../../output/output.ts'
import type { Field } from '../../output/record.ts'

export interface ImageKind {
  /** In messages, and as the name of the path's parameter. */
  readonly word: 'image' | 'iso'
  readonly noun: 'images' | 'isos'
  readonly list: ListOperation
  readonly download: Operation
  listAll(client: Client, namespace: string, signal: AbortSignal): Promise<Image[]>
  get(client: Client, named: Named): Promise<Image>
  copy(client: Client, named: Named, body: { name: string; description?: string }): Promise<Image>
  describe(client: Client, named: Named, description: string): Promise<Image>
}

export interface Named {
  readonly namespace: string
  readonly name: string
  readonly signal: AbortSignal
}

const paramsOf = ({ namespace, name }: Named) => ({ namespace, image: name })

export const imageKind: ImageKind = {
  word: 'image',
  noun: 'images',
  list: api.listImages,
  download: api.downloadImage,
  listAll: (client, namespace, signal) => client.listAll(api.listImages, { params: { namespace }, signal }),
  get: (client, named) => client.call(api.getImage, { params: paramsOf(named), signal: named.signal }),
  copy: (client, named, body) => client.call(api.copyImage, { params: paramsOf(named), body, signal: named.signal }),
  describe: (client, named, description) =>
    client.call(api.describeImage, { params: paramsOf(named), body: { description }, signal: named.signal }),
}

/** Of ISOs, too. */
export const columns: readonly Column<Image>[] = [
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

/** The newest first. */
const earlierOf = ({ version, versions = [] }: Image): string[] =>
  versions
    .filter((each) => each.version !== version)
    .map(versionText)
    .toReversed()

/** Of ISOs, too. */
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
