// Copies of images on nodes, and which of them users have requested ahead of a deployment.
import * as t from 'typebox'
import { Continue, inNamespace, listOperation, MadeListQuery, operationsOf } from '../operation.ts'
import { Architecture, Flag, ResourceVersion, Timestamp } from '../records.ts'

export const CachedCopy = t.Object(
  {
    node: t.String(),
    state: t.Enum(['Pending', 'Fetching', 'Ready', 'Failed', 'Removing'], {
      description: 'Pending: not started. Removing: removed when the agent reads it',
    }),
    progress: t.Optional(t.Object({ percent: t.Integer() }, { description: 'Progress while Fetching' })),
    pinned: t.Boolean({ description: 'Added by a user; kept until removed' }),
    bytes: t.Optional(t.Integer({ description: 'Bytes on the disk of the node' })),
    spaceUsed: t.Optional(t.String({ description: 'Size on the disk of the node, such as `1.2G`' })),
    lastUsed: t.Optional(Timestamp),
    errorMessage: t.Optional(t.String({ description: 'Why it is Failed; the agent keeps trying' })),
  },
  { title: 'CachedCopy' },
)
export type CachedCopy = t.Static<typeof CachedCopy>

export const CachedImage = t.Object(
  {
    name: t.String(),
    type: Architecture,
    size: t.String({ description: 'Disk size, such as `90G`' }),
    nodes: t.Array(CachedCopy, { description: 'Nodes of the namespace, by name' }),
  },
  { title: 'CachedImage' },
)
export type CachedImage = t.Static<typeof CachedImage>

export const NodeCache = t.Object(
  {
    name: t.String({ description: 'Name of the node' }),
    namespace: t.String(),
    copies: t.Array(t.Object({ image: t.String(), ...t.Omit(CachedCopy, ['node']).properties }), {
      description: 'Cached and requested images, by name',
    }),
    resourceVersion: ResourceVersion,
  },
  { title: 'NodeCache' },
)
export type NodeCache = t.Static<typeof NodeCache>

const Names = (description: string) =>
  t.Optional(t.Array(t.String({ minLength: 1, maxLength: 256 }), { maxItems: 1_000, description }))

const NodeSelection = t.Object(
  {
    nodes: Names('Node names'),
    tags: Names('Suitable nodes with all of these tags'),
    all: Flag('All suitable nodes of the namespace: same type as the image, or with a copy of it'),
  },
  { title: 'NodeSelection' },
)
export type NodeSelection = t.Static<typeof NodeSelection>

const NodeResult = t.Object(
  {
    node: t.String(),
    code: t.Integer({
      description:
        '202 accepted, 200 nothing to do, 404 node not found, 409 in use or no space, 422 wrong architecture',
    }),
    result: t.Enum(['Accepted', 'Unchanged', 'NotFound', 'InUse', 'NoSpace', 'WrongArchitecture', 'NotPossible']),
    message: t.String(),
  },
  { title: 'NodeResult' },
)
export type NodeResult = t.Static<typeof NodeResult>
const NodeResults = t.Object({ items: t.Array(NodeResult) }, { title: 'NodeResults' })

/** The state of one copy, as the agent of its node reports it. */
export const CopyReport = t.Object({
  /** The digest of the manifest; `recipe:` and the name of the recipe; `pull:` and the reference. */
  key: t.String({ minLength: 1, maxLength: 1_024 }),
  state: t.Enum(['Fetching', 'Ready', 'Failed']),
  percent: t.Optional(t.Integer({ minimum: 0, maximum: 100 })),
  /** Bytes on the disk of the node. */
  bytes: t.Optional(t.Integer({ minimum: 0 })),
  usedAt: t.Optional(Timestamp),
  problem: t.Optional(t.String({ maxLength: 1_024 })),
  /** Only for an image from a registry: `host/repository@sha256:…`, how users named it, and the size of its disk. */
  pulled: t.Optional(
    t.Object({
      reference: t.String({ maxLength: 1_024 }),
      names: t.Optional(t.Array(t.String({ maxLength: 1_024 }), { maxItems: 64 })),
      sizeBytes: t.Integer({ minimum: 0 }),
    }),
  ),
})
export type CopyReport = t.Static<typeof CopyReport>

/** An image, as the desired state of a node names it. */
export const DesiredImage = t.Object({
  name: t.String(),
  /** The recipe by which the node builds the image. */
  recipe: t.Optional(t.String()),
  /** The digest of its manifest. `getBlob` returns the manifest and every chunk that it names. */
  content: t.Optional(t.String()),
  /** Instead of both: an image in a registry, `host/repository@sha256:…`. `getImageRegistry` returns how to log in. */
  reference: t.Optional(t.String()),
  /** The size of its disk, for simulated nodes, which have no content. */
  sizeBytes: t.Optional(t.Integer()),
})

/** Images that the node should have, and keys of copies that it should delete. */
export const DesiredCache = t.Object({ images: t.Array(DesiredImage), drops: t.Array(t.String()) })
export type DesiredCache = t.Static<typeof DesiredCache>

const noun = 'image-cache'
const operation = operationsOf({ noun, allow: 'dev' })
const path = `${inNamespace}/cache/images` as const
const params = { namespace: 'svc-default', image: 'tiny-arm64' }
const example = {
  name: 'tiny-arm64',
  type: 'arm64',
  size: '1G',
  nodes: [
    {
      node: 'mini-arm-13',
      state: 'Ready',
      pinned: true,
      bytes: 80_740_352,
      spaceUsed: '77M',
      lastUsed: '2026-11-15T09:00:00Z',
    },
    { node: 'mini-arm-14', state: 'Fetching', progress: { percent: 35 }, pinned: true },
  ],
}

export const listCachedImages = operation({
  id: 'listCachedImages',
  method: 'GET',
  path,
  summary: 'List the cached images of the nodes',
  description: 'Images that a node of the namespace has or fetches.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: CachedImage,
  response: t.Object({ items: t.Array(CachedImage), continue: Continue }),
  example: { params: { namespace: 'svc-default' }, response: { items: [example] } },
})

export const listNodeCaches = listOperation({
  id: 'listNodeCaches',
  noun,
  path: `${inNamespace}/cache/nodes`,
  allow: 'dev',
  summary: 'List the nodes of a namespace with their cached images',
  item: NodeCache,
  example: {
    params: { namespace: 'svc-default' },
    item: {
      name: 'mini-arm-14',
      namespace: 'svc-default',
      copies: [{ image: 'tiny-arm64', state: 'Fetching', progress: { percent: 35 }, pinned: true }],
      resourceVersion: '42',
    },
  },
})

export const getCachedImage = operation({
  id: 'getCachedImage',
  method: 'GET',
  path: `${path}/{image}`,
  summary: 'Show the nodes that have a copy of an image',
  isDerived: true,
  response: CachedImage,
  refuses: ['Invalid'],
  example: { params, response: example },
})

export const addCachedImage = operation({
  id: 'addCachedImage',
  method: 'POST',
  path: `${path}/{image}/add`,
  status: 207,
  summary: 'Cache an image on nodes',
  description:
    'Nodes fetch or build it in the background, and fetch it again when the image changes. Such a ' +
    'copy is not evicted. Refused for nodes whose quota cannot hold it. A reference to an image in a registry is ' +
    'resolved once, with the credentials of the namespace.',
  involves: 'params.image',
  involvesKind: 'images',
  past: 'cached image {name}',
  tells: ['nodes', 'tags', 'all'],
  body: NodeSelection,
  response: NodeResults,
  refuses: ['Conflict', 'Invalid', 'ServiceUnavailable'],
  example: {
    params,
    body: { nodes: ['mini-arm-13'] },
    response: {
      items: [{ node: 'mini-arm-13', code: 202, result: 'Accepted', message: 'Fetching' }],
    },
  },
})

const removal = operationsOf({
  noun,
  method: 'POST',
  allow: 'dev',
  status: 207,
  summary: 'Remove copies of an image from nodes',
  description: 'Refused for nodes where VMs use it. The image stays; the next deploy fetches it again.',
  involvesKind: 'images',
  past: 'removed image {name} from the cache',
  tells: ['nodes', 'tags', 'all'],
  response: NodeResults,
  refuses: ['Invalid'],
})
const removed = {
  items: [
    {
      node: 'mini-arm-13',
      code: 409,
      result: 'InUse',
      message: 'VMs on the node use the image: svc-default/vm-cznfv',
    },
    { node: 'mini-arm-14', code: 202, result: 'Accepted', message: 'Removing' },
  ],
}

export const removeCachedImage = removal({
  id: 'removeCachedImage',
  path: `${path}/{image}/remove`,
  involves: 'params.image',
  body: NodeSelection,
  example: { params, body: { all: true }, response: removed },
})

/** The form that clients of Orka 3.6 send. */
export const removeFromImageCache = removal({
  id: 'removeFromImageCache',
  path: `${inNamespace}/imagecache/remove`,
  summary: 'Remove copies of an image from nodes, with its name in the body',
  involves: 'body.image',
  body: t.Object(
    { image: t.String({ minLength: 1, maxLength: 512 }), ...NodeSelection.properties },
    { title: 'ImageCacheRemoval' },
  ),
  example: { params: { namespace: 'svc-default' }, body: { image: 'tiny-arm64', all: true }, response: removed },
})
