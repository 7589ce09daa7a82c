// RemoteImage and RemoteIso: what can be pulled from the configured remotes. Listed for each request, so they cannot be
// watched.
import { createHash } from 'node:crypto'
import * as t from 'typebox'
import type { RemoteItem } from '../../../api/images/image-operations.ts'
import { listRemoteImages } from '../../../api/images/remote-images.ts'
import { listRemoteIsos } from '../../../api/images/remote-isos.ts'
import { architecture, column } from './columns.ts'
import { defineKind, type ObjectView } from './kind.ts'
import { archLabel, orka } from './orka.ts'

const objectName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** Turns a name such as `lab/sonoma` into a valid name of an object, the same one each time. */
function nameOfRemote(name: string): string {
  if (objectName.test(name)) return name
  const cleaned = name
    .slice(0, 200)
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]/g, '-')
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return `r-${cleaned}-${hash}`
}

/** Remotes do not report times of creation. */
const since = '1970-01-01T00:00:00Z'

const show =
  (field: string) =>
  ({ name, size, type }: RemoteItem): ObjectView => ({
    name: nameOfRemote(name),
    createdAt: since,
    labels: { [archLabel]: type },
    body: { spec: { [field]: name, size } },
  })

const size = column('Size', 'string', 'spec.size')
const sizeSchema = t.Optional(t.String({ description: 'Size of the download, such as 12G' }))

export const remoteImageKind = defineKind({
  ...orka,
  kind: 'RemoteImage',
  description: 'An image that can be pulled: create an Image with sourceType remote and its imageName as source',
  scope: 'shared',
  list: listRemoteImages,
  show: show('imageName'),
  schema: { spec: t.Object({ imageName: t.String({ description: 'Name to pull' }), size: sizeSchema }) },
  columns: [size, architecture('Type')],
})

export const remoteIsoKind = defineKind({
  ...orka,
  kind: 'RemoteIso',
  description: 'An ISO that can be pulled: create an Iso with sourceType remote and its isoName as source',
  scope: 'shared',
  list: listRemoteIsos,
  show: show('isoName'),
  schema: { spec: t.Object({ isoName: t.String({ description: 'Name to pull' }), size: sizeSchema }) },
  columns: [size],
})
