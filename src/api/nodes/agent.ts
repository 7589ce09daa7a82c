// The protocol between agents and the server, which is not in the API document. Only agents open connections: an agent joins
// once, keeps one connection open and reports over it.

import * as t from 'typebox'
import { DesiredCache, DesiredImage } from '../images/image-cache.ts'
import { base, operationsOf } from '../operation.ts'
import { Architecture, Timestamp } from '../records.ts'
import { GuestReach } from '../vms/guest-reach.ts'
import { imageStarts } from '../vms/vm-deployment.ts'
import { machineFields } from '../vms/vm-shape.ts'
import { powerStates, VmOperation } from '../vms/vms.ts'
import { DesiredCapture } from './captures.ts'
import { NodeCertificate } from './node-key.ts'
import { NodeReport } from './node-report.ts'

const Name = t.String({ minLength: 1, maxLength: 256 })
const Port = t.Integer({ minimum: 1, maximum: 65_535 })

/** The desired state of a VM on the agent's node. */
export const DesiredVm = t.Object(
  {
    name: Name,
    namespace: Name,
    uid: Name,
    /** Incremented with every change. Reports name the last generation that was carried out. */
    generation: t.Integer(),
    /** The last generation that the node reported. The node may have crashed before it stored that itself. */
    fulfilled: t.Optional(t.Integer()),
    /** The revision of the record that this generation was read from. */
    revision: t.String(),
    /** `deleted`: nothing of the VM may remain. */
    power: t.Enum(['running', 'stopped', 'suspended', 'deleted']),
    /** Incremented with every revert. A disk of an older generation is replaced by a new one from the image. */
    diskGeneration: t.Integer(),
    diskGb: t.Optional(t.Integer()),
    architecture: Architecture,
    cpu: t.Integer(),
    memoryMiB: t.Integer(),
    image: DesiredImage,
    ip: t.String(),
    ssh: Port,
    screenshare: t.Optional(Port),
    vnc: t.Optional(Port),
    reservedPorts: t.Array(t.Object({ nodePort: Port, vmPort: Port, protocol: t.Enum(['tcp', 'udp']) })),
    display: t.Object({ width: t.Integer(), height: t.Integer(), dpi: t.Integer() }),
    ...machineFields,
    /** The digest of the manifest of the ISO. */
    isoContent: t.Optional(t.String()),
    /** Whether the VM may start before all of its image is on the node. Default: it waits. */
    imageStart: t.Optional(t.Enum(imageStarts)),
    /** Whether to boot from the disk although the image has memory. */
    isCold: t.Optional(t.Boolean()),
    /** Whether this is a pool slot that no VM has taken. */
    isSlot: t.Optional(t.Boolean()),
    /** Only for a pool slot: it is ready once this command succeeds in the guest's shell. */
    readyCommand: t.Optional(t.String()),
    /** The uid of the slot that this VM takes over, if the slot still exists. */
    slot: t.Optional(Name),
    /** Captures to take, or taken and not delivered to the server yet. */
    captures: t.Optional(t.Array(DesiredCapture)),
    metadata: t.Record(t.String(), t.String()),
    /** Facts about the VM that the guest can read with its metadata. */
    facts: t.Record(t.String(), t.String()),
    userdata: t.Optional(t.String()),
    /** Intel only: the login to grow partition and file system by SSH after a resize. Sent once and never stored. */
    growth: t.Optional(t.Object({ user: t.String(), password: t.String() })),
  },
  { title: 'DesiredVm' },
)
export type DesiredVm = t.Static<typeof DesiredVm>

/**
 * What the server sends. HELLO: all VMs that the node should have; the node deletes all others. VM: one of them changed.
 * CACHE: the images that the node should have changed. DIAL: a client wants to reach a VM or the node; open `tunnel` and
 * connect it. PING: the connection is alive.
 */
export const AgentMessage = t.Union(
  [
    t.Object({
      type: t.Literal('HELLO'),
      vms: t.Array(DesiredVm),
      /** UIDs of VMs of this node whose desired state is not known now. The node leaves them unchanged. */
      kept: t.Array(t.String()),
      /** The server's data and its revision. A node that has seen a later revision, or other data, deletes nothing. */
      store: t.Object({
        uid: t.String(),
        revision: t.String(),
        /** Each start of a server begins an era at the revision that it found, so that a restored backup is noticed. */
        eras: t.Array(t.Object({ uid: t.String(), since: t.String() })),
      }),
      heartbeatSeconds: t.Integer(),
      /** The period over which nodes spread their return if all of them lose their server together. */
      spreadMs: t.Integer(),
      /** URLs of the servers of the cluster. Absent if there is only one. */
      servers: t.Optional(t.Array(t.String())),
      cache: DesiredCache,
    }),
    t.Object({ type: t.Literal('CACHE'), cache: DesiredCache }),
    t.Object({ type: t.Literal('VM'), vm: DesiredVm }),
    t.Object({
      type: t.Literal('DIAL'),
      tunnel: t.String(),
      uid: t.String(),
      /** `charts`: measurements as JSON, of the VM or, with an empty `uid`, of the node. */
      to: t.Enum(['ssh', 'vnc', 'screenshare', 'log', 'charts']),
      follow: t.Optional(t.Boolean()),
      tail: t.Optional(t.Integer()),
      minutes: t.Optional(t.Integer()),
    }),
    t.Object({ type: t.Literal('PING') }),
  ],
  { title: 'AgentMessage' },
)
export type AgentMessage = t.Static<typeof AgentMessage>

/** The progress of fetching a VM's image, in stored bytes. The rate is that of the last seconds. */
const ImageArrival = t.Object({
  percent: t.Integer({ minimum: 0, maximum: 100 }),
  bytes: t.Integer(),
  totalBytes: t.Integer(),
  bytesPerSecond: t.Integer(),
  /** Why nothing is arriving, if that is so. */
  waiting: t.Optional(t.String({ maxLength: 1_024 })),
})

/** The observed state of a VM. */
export const VmReport = t.Object(
  {
    uid: Name,
    namespace: Name,
    name: Name,
    /** The generation that was carried out, or that failed permanently if `problem` is set. */
    generation: t.Integer(),
    /** `removed`: nothing of the VM remains on the node. */
    power: t.Enum([...powerStates, 'removed']),
    problem: t.Optional(t.String({ maxLength: 8_192 })),
    /** Whether the problem is something that the host lacks. */
    isHostUnfit: t.Optional(t.Boolean()),
    /** What happened and what to do, if it is not a failure. */
    warning: t.Optional(t.String({ maxLength: 8_192 })),
    /** Ports of the VM that other programs use. The server chooses others. */
    portsTaken: t.Optional(t.Array(Port, { maxItems: 64 })),
    diskGb: t.Optional(t.Integer()),
    /** Whether the guest answers by SSH. False after some minutes without an answer; absent before that. */
    booted: t.Optional(t.Boolean()),
    /** Whether the guest of a running VM can be reached; absent while that is unknown. */
    reach: t.Optional(GuestReach),
    operation: t.Optional(VmOperation),
    /** Only while the VM runs without all of its image. */
    image: t.Optional(ImageArrival),
  },
  { title: 'VmReport' },
)
export type VmReport = t.Static<typeof VmReport>

const operation = operationsOf({ noun: 'agent', isUnpublished: true })
/** Agents may make these calls over their connection (`isCallable`). */
const call = operationsOf({ noun: 'agent', isUnpublished: true, allow: 'agent', method: 'POST', isIdempotent: true })
const path = `${base}/agent` as const
const report = {
  ip: '10.221.189.13',
  architecture: 'arm64',
  cpu: 8,
  memoryMiB: 16_384,
  gpus: 0,
  diskFreeGb: 200,
  driver: 'qemu',
  driverVersion: 'QEMU 7.2.9',
  version: '3.0.0',
  os: 'Linux 6.1',
  images: ['tiny-arm64'],
  busyPorts: [],
}

export const joinCluster = operation({
  id: 'joinCluster',
  isIdempotent: true,
  method: 'POST',
  path: `${path}/join`,
  allow: 'anyone',
  status: 201,
  also: { 200: 'The key has already joined under this name' },
  summary: 'Join the cluster as a node',
  involves: 'body.name',
  involvesKind: 'nodes',
  past: 'joined {namespace} with join token {joinToken}',
  body: t.Object({
    token: t.String({ maxLength: 8_192, writeOnly: true }),
    name: Name,
    publicKey: t.String({ maxLength: 512, description: 'Ed25519, as SPKI in base64' }),
  }),
  response: t.Object({
    name: t.String(),
    namespace: t.String(),
    uid: t.String(),
    joinToken: t.Optional(t.String({ description: 'ID of the token, not the token' })),
  }),
  refuses: ['Unauthorized', 'AlreadyExists', 'Invalid', 'NotFound', 'Conflict'],
  example: {
    body: {
      token: 'eyJhbGciOiJFZERTQSJ9.e30.c2ln',
      name: 'mini-arm-13',
      publicKey: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
    },
    response: {
      name: 'mini-arm-13',
      namespace: 'svc-default',
      uid: '1c1d4a4e-7f2a-4a0f-8d63-0c3d0b7f9a10',
      joinToken: '8d0f1c2e',
    },
  },
})

export const issueAgentToken = operation({
  id: 'issueAgentToken',
  method: 'POST',
  path: `${path}/token`,
  allow: 'anyone',
  status: 201,
  summary: 'Exchange a signature of the node key for a token',
  body: t.Object({
    name: Name,
    at: Timestamp,
    signature: t.String({
      maxLength: 512,
      writeOnly: true,
      description: 'Ed25519 over `svc3-agent\\n<name>\\n<at>` by the key of the node, in base64',
    }),
  }),
  secretAnswer: true,
  response: t.Object({
    token: t.String(),
    expiresAt: Timestamp,
    /** Absent if the server cannot sign one now. */
    certificate: t.Optional(NodeCertificate),
  }),
  refuses: ['Unauthorized'],
  example: {
    body: { name: 'mini-arm-13', at: '2026-11-15T09:00:00Z', signature: 'c2lnbmF0dXJl' },
    response: { token: 'eyJhbGciOiJFZERTQSJ9.e30.c2ln', expiresAt: '2026-11-15T10:00:00Z' },
  },
})

export const reportNode = call({
  id: 'reportNode',
  path: `${path}/node`,
  summary: 'Report the state of a node',
  body: NodeReport,
  response: t.Object({
    name: t.String(),
    namespace: t.String(),
    /** By epoch. With these secrets a node that serves images verifies the tickets of other nodes. */
    peerSecrets: t.Optional(t.Record(t.String(), t.String())),
  }),
  refuses: ['NotFound', 'Conflict'],
  example: { body: report, response: { name: 'mini-arm-13', namespace: 'svc-default' } },
})

export const noteAgent = call({
  id: 'noteAgent',
  path: `${path}/note`,
  summary: 'Confirm the last reported state of a node',
  response: t.Object({ wantsReport: t.Boolean({ description: 'The server has another state: report it' }) }),
  refuses: ['NotFound'],
  example: { response: { wantsReport: false } },
})

const Count = t.Integer({ minimum: 0 })

/** Counters since the agent was started. */
export const ImageFigures = t.Object({
  /** Reads of guests from images that are still being fetched. */
  reads: Count,
  readWaitMs: Count,
  /** Fetched image content by source. */
  peerBytes: Count,
  serverBytes: Count,
  registryBytes: Count,
})
export type ImageFigures = t.Static<typeof ImageFigures>

export const reportVms = call({
  id: 'reportVms',
  path: `${path}/vms`,
  summary: 'Report the state of VMs of a node',
  body: t.Object({ vms: t.Array(VmReport, { maxItems: 1_000 }), images: t.Optional(ImageFigures) }),
  response: t.Object({ unknown: t.Array(t.String(), { description: 'UIDs that this node should not have' }) }),
  example: {
    body: {
      vms: [
        {
          uid: '5b0c7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11',
          namespace: 'svc-default',
          name: 'vm-cznfv',
          generation: 1,
          power: 'running',
        },
      ],
    },
    response: { unknown: [] },
  },
})

export const openTunnel = operation({
  id: 'openTunnel',
  method: 'GET',
  path: `${path}/tunnels/{tunnel}`,
  allow: 'agent',
  status: 101,
  summary: 'Answer a DIAL: connect a tunnel',
  isUpgrade: true,
  response: t.String(),
  example: { params: { tunnel: 'b3c1f0a2' }, response: '' },
})

/** How to reach a peer: over TLS, with a ticket that is valid for a few minutes and for this pair of nodes. */
export const Peer = t.Object({
  node: t.String(),
  /** The uid that its certificate must name. */
  uid: t.String(),
  ip: t.String(),
  port: Port,
  identity: t.String(),
  key: t.String(),
})
export type Peer = t.Static<typeof Peer>

export const findPeers = call({
  id: 'findPeers',
  path: `${path}/peers`,
  summary: 'Find other nodes that have an image or a chunk of it',
  body: t.Object({
    content: t.String({ maxLength: 100, description: 'Digest of the manifest' }),
    chunk: t.Optional(
      t.String({
        maxLength: 100,
        description: 'Digest of a chunk. Without peers in the answer, the caller fetches it for the others',
      }),
    ),
    without: t.Optional(
      t.Array(t.String({ maxLength: 64 }), { maxItems: 16, description: 'Nodes that did not have the chunk' }),
    ),
  }),
  secretAnswer: true,
  response: t.Object({ peers: t.Array(Peer) }),
  example: { body: { content: `sha256:${'0'.repeat(64)}` }, response: { peers: [] } },
})

/** The most chunks of a boot order, at most a gigabyte together. Later reads do not belong to the boot. */
export const longestBootOrder = 64
const BootOrder = t.Array(t.Integer({ minimum: 0, maximum: 10_000_000 }), { maxItems: longestBootOrder })

export const noteBootOrder = call({
  id: 'noteBootOrder',
  path: `${path}/boot-order`,
  summary: 'Learn which chunks of an image its last boots read first, and add what a boot has read',
  body: t.Object({
    content: t.String({ pattern: '^sha256:[0-9a-f]{64}$', description: 'Digest of the manifest' }),
    chunks: t.Optional(BootOrder),
  }),
  response: t.Object({ chunks: BootOrder }),
  example: { body: { content: `sha256:${'0'.repeat(64)}` }, response: { chunks: [0, 17] } },
})

export const getBlob = operation({
  id: 'getBlob',
  method: 'GET',
  path: `${path}/blobs/{digest}`,
  allow: 'agent',
  also: { 206: 'The requested range' },
  summary: 'Read a stored manifest or chunk of an image',
  produces: 'application/octet-stream',
  isDownload: true,
  response: t.String(),
  refuses: ['RangeNotSatisfiable'],
  example: { params: { digest: `sha256:${'0'.repeat(64)}` }, response: '' },
})
