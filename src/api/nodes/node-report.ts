// What the agent of a node tells the server about its host. Not for other clients.
import * as t from 'typebox'
import { CopyReport } from '../images/image-cache.ts'
import { Architecture } from '../records.ts'

const Port = t.Integer({ minimum: 1, maximum: 65_535 })

/** The state of a node, sent at the start, when it changes, and as heartbeat. */
export const NodeReport = t.Object(
  {
    ip: t.String({ pattern: '^(?:(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?:\\.|$)){4}$', description: 'An IPv4 literal' }),
    architecture: Architecture,
    cpu: t.Integer({ minimum: 1, maximum: 4_096 }),
    memoryMiB: t.Integer({ minimum: 1, maximum: 1_000_000_000 }),
    gpus: t.Integer({ minimum: 0, maximum: 1_000 }),
    maxVms: t.Optional(t.Integer({ minimum: 0, maximum: 100_000 })),
    /** So many of them with macOS. */
    maxMacosVms: t.Optional(t.Integer({ minimum: 0, maximum: 100_000 })),
    /** Why guests with macOS do not run on it, and what to do. Absent: they do, or its agent does not know. */
    noMacos: t.Optional(t.String({ maxLength: 2_048 })),
    /** Free on the disk that holds VMs. */
    diskFreeGb: t.Integer({ minimum: 0 }),
    driver: t.String({ maxLength: 64 }),
    driverVersion: t.String({ maxLength: 256 }),
    version: t.String({ maxLength: 64 }),
    os: t.String({ maxLength: 256 }),
    /** Set where the node cannot run VMs now: what is wrong and what to do. */
    problem: t.Optional(t.String({ maxLength: 2_048 })),
    /** It can keep VMs waiting for a pool, which nobody reaches. */
    takesSlots: t.Optional(t.Boolean()),
    /** Names of the images that it has a copy of. */
    images: t.Array(t.String({ maxLength: 512 }), { maxItems: 10_000 }),
    /** Copies of images, the pinned first, then by use. Absent: an agent that knows no cache. */
    cache: t.Optional(t.Array(CopyReport, { maxItems: 256 })),
    /** What copies of images may take, and what they take. */
    imageSpace: t.Optional(t.Object({ quotaBytes: t.Integer({ minimum: 0 }), usedBytes: t.Integer({ minimum: 0 }) })),
    /** Where it serves content to other nodes. */
    peerPort: t.Optional(Port),
    /** Ports that other programs of the host listen on. */
    busyPorts: t.Array(Port, { maxItems: 20_000 }),
  },
  { title: 'NodeReport' },
)
export type NodeReport = t.Static<typeof NodeReport>
