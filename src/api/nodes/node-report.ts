// What agents report about their hosts. Not in the API document.
import * as t from 'typebox'
import { CopyReport } from '../images/image-cache.ts'
import { Architecture } from '../records.ts'

const Port = t.Integer({ minimum: 1, maximum: 65_535 })

/** What a check of a host found, and what to do. `agent doctor` prints the same. */
export const HostCheck = t.Object(
  {
    check: t.String({ maxLength: 64 }),
    result: t.Enum(['ok', 'warning', 'problem']),
    found: t.String({ maxLength: 512 }),
    advice: t.Optional(t.String({ maxLength: 512, description: 'What to do, with the command' })),
    preventsMacos: t.Optional(t.Boolean({ description: 'Whether the problem keeps macOS VMs from starting' })),
  },
  { title: 'HostCheck' },
)
export type HostCheck = t.Static<typeof HostCheck>

/** Sent when the agent connects, when something changes, and as a heartbeat. */
export const NodeReport = t.Object(
  {
    ip: t.String({ pattern: '^(?:(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?:\\.|$)){4}$', description: 'An IPv4 literal' }),
    architecture: Architecture,
    cpu: t.Integer({ minimum: 1, maximum: 4_096 }),
    memoryMiB: t.Integer({ minimum: 1, maximum: 1_000_000_000 }),
    gpus: t.Integer({ minimum: 0, maximum: 1_000 }),
    maxVms: t.Optional(t.Integer({ minimum: 0, maximum: 100_000 })),
    /** How many of the VMs may run macOS. */
    maxMacosVms: t.Optional(t.Integer({ minimum: 0, maximum: 100_000 })),
    /** Why the host runs no macOS guests, and what to do. Absent if it does, or if that is unknown. */
    noMacos: t.Optional(t.String({ maxLength: 2_048 })),
    /** Free space of the disk that has the VMs. */
    diskFreeGb: t.Integer({ minimum: 0 }),
    driver: t.String({ maxLength: 64 }),
    driverVersion: t.String({ maxLength: 256 }),
    version: t.String({ maxLength: 64 }),
    os: t.String({ maxLength: 256 }),
    /** Why the node cannot run VMs now, and what to do. */
    problem: t.Optional(t.String({ maxLength: 2_048 })),
    /** As the agent sees the host, from its own session. */
    checks: t.Optional(t.Array(HostCheck, { maxItems: 32 })),
    /** Whether the node can have pool slots, which are not reachable from outside. */
    takesSlots: t.Optional(t.Boolean()),
    /** Whether the node can cache images of registries by their references. Absent for agents before alpha.32. */
    takesReferences: t.Optional(t.Boolean()),
    /** Names of images with a copy on the node. */
    images: t.Array(t.String({ maxLength: 512 }), { maxItems: 1_000 }),
    /** Copies of images, pinned ones first, then by last use. Absent for agents without a cache. */
    cache: t.Optional(t.Array(CopyReport, { maxItems: 256 })),
    /** The quota for copies of images, and its use. */
    imageSpace: t.Optional(t.Object({ quotaBytes: t.Integer({ minimum: 0 }), usedBytes: t.Integer({ minimum: 0 }) })),
    /** The port on which it serves image content to other nodes. */
    peerPort: t.Optional(Port),
    /** Ports that other programs of the host listen on. */
    busyPorts: t.Array(Port, { maxItems: 20_000 }),
  },
  { title: 'NodeReport' },
)
export type NodeReport = t.Static<typeof NodeReport>
