// What servers of one cluster say to each other. Not for other clients, and not in the API document.
import * as t from 'typebox'
import { base, operationsOf } from '../operation.ts'
import { AgentMessage } from './agent.ts'

const operation = operationsOf({ noun: 'servers', isUnpublished: true })
const path = `${base}/servers` as const
const Name = t.String({ minLength: 1, maxLength: 256 })
const Digest = t.String({ maxLength: 100 })

/** Set on a request that another server passed on, with that server's id: it is answered here, or not at all. */
export const passedOnHeader = 'x-svc3-passed-on-by'

export const tellNode = operation({
  id: 'tellNode',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/tell`,
  allow: 'server',
  summary: 'Tell a node something over the stream that this server holds',
  body: t.Object({ node: Name, message: AgentMessage }),
  response: t.Object({ isTold: t.Boolean({ description: 'Whether its stream is here' }) }),
  example: { body: { node: 'mini-arm-13', message: { type: 'PING' } }, response: { isTold: false } },
})

export const noteSeenNodes = operation({
  id: 'noteSeenNodes',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/seen`,
  allow: 'server',
  summary: 'Say which nodes were heard of, whose streams this server holds',
  body: t.Object({ nodes: t.Array(Name, { maxItems: 10_000 }) }),
  response: t.Object({}),
  example: { body: { nodes: ['mini-arm-13'] }, response: {} },
})

export const passGrowth = operation({
  id: 'passGrowth',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/growth`,
  allow: 'server',
  summary: 'Pass on by what a file system may be grown, ahead of the desired',
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

export const tellRevision = operation({
  id: 'tellRevision',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/revision`,
  allow: 'server',
  summary: 'Say at which revision the store is now; if it does not answer, what this server was handed of it',
  body: t.Object({ after: t.String({ maxLength: 20, description: 'What the other server was handed ends here' }) }),
  response: t.Object({
    rev: t.String(),
    isAway: t.Boolean({ description: 'Whether the store does not answer this server: the revision is its own then' }),
    changes: t.Optional(
      t.Array(t.Unknown(), { description: 'All between the two; missing when this server does not remember that far' }),
    ),
  }),
  example: { body: { after: '4710' }, response: { rev: '4711', isAway: false } },
})

export const openServerTunnel = operation({
  id: 'openServerTunnel',
  method: 'GET',
  path: `${path}/tunnels/{node}/{tunnel}`,
  allow: 'server',
  status: 101,
  summary: 'Bring a node that came to another server for a tunnel of this one',
  isUpgrade: true,
  response: t.String(),
  refuses: ['NotFound'],
  example: { params: { node: 'mini-arm-13', tunnel: 'b3c1f0a2' }, response: '' },
})

export const findServerBlobs = operation({
  id: 'findServerBlobs',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/blobs`,
  allow: 'server',
  summary: 'Find out which content this server has',
  body: t.Object({ digests: t.Array(Digest, { maxItems: 5_000 }) }),
  response: t.Object({ found: t.Array(t.Object({ digest: Digest, bytes: t.Integer() })) }),
  example: { body: { digests: [`sha256:${'0'.repeat(64)}`] }, response: { found: [] } },
})

export const getServerBlob = operation({
  id: 'getServerBlob',
  method: 'GET',
  path: `${path}/blobs/{digest}`,
  allow: 'server',
  also: { 206: 'A part of it, as `Range` asked for' },
  summary: 'Read a manifest or a chunk of an image that this server has',
  produces: 'application/octet-stream',
  isDownload: true,
  response: t.String(),
  refuses: ['NotFound', 'RangeNotSatisfiable'],
  example: { params: { digest: `sha256:${'0'.repeat(64)}` }, response: '' },
})
