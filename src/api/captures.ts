// How what a node has frozen of a VM comes to the server: which content it lacks, that content, and how it went. Spoken
// by agents only, and not in the API document.
import * as t from 'typebox'
import { base, operation } from './operation.ts'

export const captureKinds = ['save', 'commit'] as const

/** What is to be frozen of a running VM, once, whatever dies meanwhile. */
export const WantedCapture = t.Object(
  {
    id: t.String({ minLength: 1, maxLength: 128 }),
    kind: t.Enum(captureKinds),
    /** Where the hypervisor can. */
    withMemory: t.Boolean(),
  },
  { title: 'WantedCapture' },
)
export type WantedCapture = t.Static<typeof WantedCapture>

const noun = 'captures'
const path = `${base}/agent` as const
const Digest = t.String({ pattern: '^sha256:[0-9a-f]{64}$' })
const digest = `sha256:${'0'.repeat(64)}`
const params = { capture: '7d0e7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11' }

export const findMissingBlobs = operation({
  id: 'findMissingBlobs',
  noun,
  isUnpublished: true,
  isIdempotent: true,
  method: 'POST',
  path: `${path}/blobs/missing`,
  allow: 'agent',
  status: 200,
  summary: 'Ask which content the server lacks',
  description: 'What it has counts as new from now on.',
  body: t.Object({ digests: t.Array(Digest, { maxItems: 5_000 }) }),
  response: t.Object({ missing: t.Array(t.String()) }),
  refuses: [],
  example: { body: { digests: [digest] }, response: { missing: [digest] } },
})

export const putBlob = operation({
  id: 'putBlob',
  noun,
  isUnpublished: true,
  method: 'PUT',
  path: `${path}/blobs/{digest}`,
  allow: 'agent',
  status: 201,
  summary: 'Store a manifest or a chunk of an image',
  description: 'With a Content-Length. Kept only when it is what its digest says.',
  isUpload: 'blob',
  consumes: 'application/octet-stream',
  response: t.Object({ digest: t.String() }),
  refuses: ['BadRequest', 'RequestEntityTooLarge', 'ServiceUnavailable'],
  example: { params: { digest }, response: { digest } },
})

export const finishCapture = operation({
  id: 'finishCapture',
  noun,
  isUnpublished: true,
  isIdempotent: true,
  method: 'POST',
  path: `${path}/captures/{capture}`,
  allow: 'agent',
  status: 200,
  summary: 'Say that everything of a capture is there',
  description: 'What was captured becomes visible by this, or nothing happens and the answer says what is missing.',
  body: t.Object({ content: Digest }),
  response: t.Object({ missing: t.Array(t.String()) }),
  refuses: ['NotFound', 'Invalid'],
  example: { params, body: { content: digest }, response: { missing: [] } },
})

export const reportCapture = operation({
  id: 'reportCapture',
  noun,
  isUnpublished: true,
  isIdempotent: true,
  method: 'POST',
  path: `${path}/captures/{capture}/progress`,
  allow: 'agent',
  status: 200,
  summary: 'Say how far a capture is, or that it failed for good',
  body: t.Object({
    percent: t.Integer({ minimum: 0, maximum: 100 }),
    bytes: t.Integer({ minimum: 0 }),
    problem: t.Optional(t.String({ minLength: 1, maxLength: 8_192 })),
  }),
  response: t.Object({}),
  refuses: ['NotFound'],
  example: { params, body: { percent: 62, bytes: 3_221_225_472 }, response: {} },
})
