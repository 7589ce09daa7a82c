// The protocol between the servers of a cluster, which is not in the API document.
import * as t from 'typebox'
import { base, operationsOf } from '../operation.ts'
import { AgentMessage } from './agent.ts'

const shared = { noun: 'servers', isUnpublished: true, allow: 'server' } as const
const operation = operationsOf(shared)
const call = operationsOf({ ...shared, method: 'POST', isIdempotent: true })
const path = `${base}/servers` as const
const Name = t.String({ minLength: 1, maxLength: 256 })
const Digest = t.String({ maxLength: 100 })

/** Has the id of the server that forwarded a request. A forwarded request is not forwarded again. */
export const passedOnHeader = 'x-svc3-passed-on-by'

export const tellNode = call({
  id: 'tellNode',
  path: `${path}/tell`,
  summary: 'Send a message to a node over its connection to this server',
  body: t.Object({ node: Name, message: AgentMessage }),
  response: t.Object({ isTold: t.Boolean({ description: 'Whether the node is connected to this server' }) }),
  example: { body: { node: 'mini-arm-13', message: { type: 'PING' } }, response: { isTold: false } },
})

export const noteSeenNodes = call({
  id: 'noteSeenNodes',
  path: `${path}/seen`,
  summary: 'Report that nodes of this server were seen by the caller',
  body: t.Object({ nodes: t.Array(Name, { maxItems: 10_000 }) }),
  response: t.Object({}),
  example: { body: { nodes: ['mini-arm-13'] }, response: {} },
})

export const passGrowth = call({
  id: 'passGrowth',
  path: `${path}/growth`,
  summary: 'Forward the login for growing a file system',
  body: t.Object({
    uid: Name,
    generation: t.Integer(),
    user: t.String({ maxLength: 1_024, writeOnly: true }),
    password: t.String({ maxLength: 8_192, writeOnly: true }),
  }),
  response: t.Object({}),
  example: {
    body: { uid: '5b0c7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11', generation: 2, user: 'admin', password: 'admin' },
    response: {},
  },
})

export const tellRevision = call({
  id: 'tellRevision',
  path: `${path}/revision`,
  summary:
    'Show the revision of the store or, if it does not respond, the latest changes that this server has received',
  body: t.Object({
    after: t.String({ maxLength: 20, description: 'Revision up to which the caller has received changes' }),
  }),
  response: t.Object({
    rev: t.String(),
    isAway: t.Boolean({
      description: 'Whether the store does not respond to this server, so that the revision is what it has received',
    }),
    changes: t.Optional(
      t.Array(t.Unknown(), { description: 'All changes in between; absent if this server no longer has them' }),
    ),
  }),
  example: { body: { after: '4710' }, response: { rev: '4711', isAway: false } },
})

export const openServerTunnel = operation({
  id: 'openServerTunnel',
  method: 'GET',
  path: `${path}/tunnels/{node}/{tunnel}`,
  status: 101,
  summary: 'Forward the tunnel of a node that connected to another server',
  isUpgrade: true,
  response: t.String(),
  example: { params: { node: 'mini-arm-13', tunnel: 'b3c1f0a2' }, response: '' },
})

export const findServerBlobs = call({
  id: 'findServerBlobs',
  path: `${path}/blobs`,
  summary: 'List the content that this server has',
  body: t.Object({ digests: t.Array(Digest, { maxItems: 5_000 }) }),
  response: t.Object({ found: t.Array(t.Object({ digest: Digest, bytes: t.Integer() })) }),
  example: { body: { digests: [`sha256:${'0'.repeat(64)}`] }, response: { found: [] } },
})

export const getServerBlob = operation({
  id: 'getServerBlob',
  method: 'GET',
  path: `${path}/blobs/{digest}`,
  also: { 206: 'The requested range' },
  summary: 'Read a manifest or a chunk of an image from this server',
  produces: 'application/octet-stream',
  isDownload: true,
  response: t.String(),
  refuses: ['RangeNotSatisfiable'],
  example: { params: { digest: `sha256:${'0'.repeat(64)}` }, response: '' },
})
