// How agents deliver captures of VMs to the server or to a registry: which content the server lacks, the content itself,
// credentials, and the result. Not in the API document.
import * as t from 'typebox'
import { base, operationsOf } from '../operation.ts'
import { pushFormats, Timestamp } from '../records.ts'

export const captureKinds = ['save', 'commit', 'push'] as const

/** A capture of a running VM, which is taken once even if agent or server restart. */
export const DesiredCapture = t.Object(
  {
    id: t.String({ minLength: 1, maxLength: 128 }),
    kind: t.Enum(captureKinds),
    /** Whether to include the memory, if the hypervisor can. */
    withMemory: t.Boolean(),
    /** Only for a push: the target, `<registry_host>/<repository>/<image>:TAG`. */
    reference: t.Optional(t.String({ maxLength: 1_024 })),
    /** Only for a push: the format of the image. Default: `svc3`. */
    format: t.Optional(t.Enum([...pushFormats])),
    /** Only for a push: the time of the request. */
    createdAt: t.Optional(Timestamp),
  },
  { title: 'DesiredCapture' },
)
export type DesiredCapture = t.Static<typeof DesiredCapture>

/** How to reach a registry. Without credentials, access is anonymous. Agents never store this. */
export const RegistryLogin = t.Object(
  {
    /** The URL, with scheme. */
    server: t.String(),
    credentials: t.Optional(t.Object({ username: t.String(), password: t.String() })),
    allowInsecure: t.Boolean(),
    /** Which addresses other than public ones the agent may connect to. */
    policy: t.Object({ allowPrivate: t.Boolean(), allowLoopback: t.Boolean() }),
    /** An additional certificate authority to trust, in PEM. */
    ca: t.Optional(t.String()),
  },
  { title: 'RegistryLogin' },
)
export type RegistryLogin = t.Static<typeof RegistryLogin>

const shared = { noun: 'captures', isUnpublished: true, allow: 'agent' } as const
const operation = operationsOf(shared)
const call = operationsOf({ ...shared, method: 'POST', isIdempotent: true })
const login = operationsOf({ ...shared, method: 'GET', secretAnswer: true, response: RegistryLogin })
const path = `${base}/agent` as const
const Digest = t.String({ pattern: '^sha256:[0-9a-f]{64}$' })
const digest = `sha256:${'0'.repeat(64)}`
const params = { capture: '7d0e7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11' }

export const findMissingBlobs = call({
  id: 'findMissingBlobs',
  path: `${path}/blobs/missing`,
  summary: 'List the content that the server lacks',
  description: 'Content that it has is kept as if it were new.',
  body: t.Object({ digests: t.Array(Digest, { maxItems: 5_000 }) }),
  response: t.Object({ missing: t.Array(t.String()) }),
  refuses: ['NotFound'],
  example: { body: { digests: [digest] }, response: { missing: [digest] } },
})

export const putBlob = operation({
  id: 'putBlob',
  method: 'PUT',
  path: `${path}/blobs/{digest}`,
  status: 201,
  summary: 'Store a manifest or a chunk of an image',
  description:
    'Requires a Content-Length. Stored only if it matches its digest, and while the node delivers a capture.',
  isUpload: 'blob',
  consumes: 'application/octet-stream',
  response: t.Object({ digest: t.String() }),
  refuses: ['BadRequest', 'RequestEntityTooLarge', 'ServiceUnavailable'],
  example: { params: { digest }, response: { digest } },
})

export const finishCapture = call({
  id: 'finishCapture',
  path: `${path}/captures/{capture}`,
  summary: 'Finish a capture',
  description:
    'Makes the capture visible, or answers which content to send first. `content` is ' +
    'the digest of its manifest: of an image, in the store; of a push, in the registry.',
  body: t.Object({ content: Digest }),
  response: t.Object({ missing: t.Array(t.String()) }),
  refuses: ['Invalid'],
  example: { params, body: { content: digest }, response: { missing: [] } },
})

export const reportCapture = call({
  id: 'reportCapture',
  path: `${path}/captures/{capture}/progress`,
  summary: 'Report the progress or the failure of a capture',
  body: t.Object({
    percent: t.Integer({ minimum: 0, maximum: 100 }),
    bytes: t.Integer({ minimum: 0 }),
    /** The current step of a push; for a save or commit, what it waits for. */
    phase: t.Optional(t.String({ maxLength: 256 })),
    bytesTotal: t.Optional(t.Integer({ minimum: 0 })),
    bytesSkipped: t.Optional(t.Integer({ minimum: 0 })),
    /** Only for a push: why it waits for the registry, and for how long. */
    waiting: t.Optional(t.Object({ problem: t.String(), nextTryMs: t.Integer({ minimum: 0 }) })),
    problem: t.Optional(t.String({ minLength: 1, maxLength: 8_192 })),
  }),
  response: t.Object({}),
  example: { params, body: { percent: 62, bytes: 3_221_225_472 }, response: {} },
})

export const getCaptureCredentials = login({
  id: 'getCaptureCredentials',
  path: `${path}/captures/{capture}/credentials`,
  summary: 'Read the credentials for a push',
  refuses: ['Conflict'],
  example: {
    params,
    response: {
      server: 'https://ghcr.io',
      credentials: { username: 'ci-bot', password: 'not-a-real-password' },
      allowInsecure: false,
      policy: { allowPrivate: false, allowLoopback: false },
    },
  },
})

export const getImageRegistry = login({
  id: 'getImageRegistry',
  path: `${path}/vms/{vmOrImage}/registry`,
  summary: 'Read the registry credentials for an image of a VM or of the cache',
  description:
    '`vmOrImage` is the UID of a VM of the node, or the reference of an image that it caches. Empty if the namespace has no credentials.',
  example: {
    params: { vmOrImage: '5b0c7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11' },
    response: {
      server: 'https://ghcr.io',
      allowInsecure: false,
      policy: { allowPrivate: false, allowLoopback: false },
    },
  },
})
