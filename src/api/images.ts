// Images on the wire. They belong to the cluster: every namespace sees the same ones.
import * as t from 'typebox'
import { inNamespace, listOperation, operation } from './operation.ts'
import { Architecture, ResourceVersion, Timestamp } from './records.ts'

export const imageStates = ['Ready', 'Updating', 'Failed'] as const

export const Image = t.Object(
  {
    name: t.String(),
    description: t.String(),
    type: Architecture,
    size: t.String({ description: 'Of the disk, such as `90G`' }),
    spaceUsed: t.Optional(t.String()),
    state: t.Enum(imageStates),
    progress: t.Optional(t.Object({ percent: t.Integer(), bytes: t.Integer() })),
    errorMessage: t.Optional(t.String()),
    owner: t.String(),
    source: t.String(),
    sourceType: t.Enum(['local', 'remote', 'vm', 'generated', 'userUpload']),
    sourceNamespace: t.Optional(t.String()),
    checksum: t.Optional(t.String()),
    usedBy: t.Array(t.String(), { description: 'VMs, as `namespace/name`' }),
    lastUpdatedTimestamp: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'Image' },
)
export type Image = t.Static<typeof Image>

const noun = 'images'
const path = `${inNamespace}/images` as const
const example = {
  name: 'tiny-arm64',
  description: 'A small Linux to try things with',
  type: 'arm64',
  size: '1G',
  state: 'Ready',
  owner: 'svc3',
  source: 'built-in',
  sourceType: 'local',
  usedBy: ['svc-default/vm-cznfv'],
  lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
  resourceVersion: '7',
}

export const listImages = listOperation({
  id: 'listImages',
  noun,
  path,
  allow: 'dev',
  summary: 'List the images of the cluster',
  item: Image,
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getImage = operation({
  id: 'getImage',
  noun,
  method: 'GET',
  path: `${path}/{image}`,
  allow: 'dev',
  status: 200,
  summary: 'Show an image',
  isDerived: true,
  response: Image,
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default', image: 'tiny-arm64' }, response: example },
})
