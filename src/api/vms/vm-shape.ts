// The hardware and the placement of a VM in two forms: as clients request it, with nearly all fields optional, and as
// records store it, with all defaults filled in.
import * as t from 'typebox'
import type { Architecture } from '../architecture.ts'
import { Flag } from '../records.ts'

/**
 * Fields that pass unchanged from the request to the record, the agent and the driver. Such a field is declared here and in
 * `vmShapeFields`, and used by a driver; no code in between names it. These are fields and no schema, because schemas are
 * empty objects in the bundles of the command line and the console.
 */
export const machineFields = {
  netBoost: t.Boolean(),
  legacyIO: t.Boolean(),
  gpuPassthrough: t.Boolean(),
  iso: t.Optional(t.String()),
  systemSerial: t.Optional(t.String()),
  directories: t.Optional(t.Array(t.String())),
  nested: t.Optional(t.Boolean()),
  rosetta: t.Optional(t.String()),
}
const VmMachine = t.Object(machineFields)
export type VmMachine = Readonly<t.Static<typeof VmMachine>>
export const machineDefaults: VmMachine = { netBoost: true, legacyIO: false, gpuPassthrough: false }

const machineNames = Object.keys(machineFields) as readonly (keyof VmMachine)[]

/** Picks these fields. Those that are missing, as in old records, get their defaults. */
export function machineOf(from: Partial<VmMachine>): VmMachine {
  const machine: Record<string, unknown> = { ...machineDefaults }
  for (const name of machineNames) if (from[name] !== undefined) machine[name] = from[name]
  return machine as unknown as VmMachine
}

/** Requests a generated serial number, which no other VM has. */
export const randomSerial = 'random'

export const schedulers = ['default', 'most-allocated'] as const

/** Of a request. Records of older versions may have other values. */
export const displayLimits = {
  width: { min: 320, max: 3_840 },
  height: { min: 480, max: 2_160 },
  dpi: { min: 60, max: 320 },
} as const

/**
 * The request form, shared by deployments and VM configurations. Zero and false mean "not set" for fields that clients of
 * Orka always send.
 */
export const vmShapeFields = {
  cpu: t.Optional(t.Integer({ minimum: 0, maximum: 1024, description: 'Number of CPU cores. Default: 3' })),
  memory: t.Optional(
    t.Number({
      minimum: 0,
      maximum: 65_536,
      description: 'Memory in GiB, one decimal. 0: in proportion to the cores',
    }),
  ),
  node: t.Optional(t.String({ maxLength: 256, description: 'Run only on this node' })),
  tag: t.Optional(t.String({ maxLength: 256, description: 'Prefer nodes with this tag' })),
  tagRequired: Flag('Use only nodes with the tag'),
  scheduler: t.Optional(
    t.String({ maxLength: 64, description: '`default` balances, `most-allocated` fills nodes one by one' }),
  ),
  vncConsole: Flag('Screen over VNC. Default: true'),
  netBoost: Flag('Intel: fast network devices. Default: true'),
  legacyIO: Flag('Intel: legacy disk devices'),
  gpuPassthrough: Flag('Intel: GPU of the node, without VNC; always on for arm64'),
  iso: t.Optional(t.String({ maxLength: 256, description: 'Intel: ISO to attach' })),
  systemSerial: t.Optional(
    t.String({ maxLength: 64, description: 'Intel: serial number. `random`: a new one, also on Macs' }),
  ),
  directories: t.Optional(
    t.Array(t.String({ maxLength: 1_024 }), {
      minItems: 1,
      maxItems: 16,
      description:
        'Apple silicon: folders of the host, as `NAME:PATH` or `NAME:PATH:ro`, which its operator has allowed',
    }),
  ),
  nested: Flag('Apple silicon: nested virtualization'),
  rosetta: t.Optional(t.String({ maxLength: 36, description: 'Apple silicon, Linux: tag of a share with Rosetta' })),
  displayWidth: t.Optional(t.Integer({ minimum: 0, maximum: 3_840, description: '320 to 3840. Default: 1920' })),
  displayHeight: t.Optional(t.Integer({ minimum: 0, maximum: 2_160, description: '480 to 2160. Default: 1080' })),
  displayDPI: t.Optional(t.Integer({ minimum: 0, maximum: 320, description: '60 to 320. Default: 96' })),
  displayDpi: t.Optional(t.Integer({ minimum: 0, maximum: 320, description: 'Same as displayDPI' })),
} satisfies Record<keyof VmMachine, t.TSchema> & t.TProperties
const VmShapeInput = t.Object(vmShapeFields)
export type VmShapeInput = t.Static<typeof VmShapeInput>

/** The form of records. */
export interface VmShape extends VmMachine {
  readonly image: string
  readonly architecture: Architecture
  readonly cpu: number
  /** 0: in proportion to the cores. */
  readonly memoryMiB: number
  readonly node?: string
  readonly tag?: string
  readonly tagRequired: boolean
  readonly scheduler: (typeof schedulers)[number]
  readonly vncConsole: boolean
  readonly display: { readonly width: number; readonly height: number; readonly dpi: number }
}
