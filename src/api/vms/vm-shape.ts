// What a VM is made of and where it goes, in two forms: as clients ask for it, when nearly everything may be left out, and
// whole, with every default filled in, as records keep it.
import * as t from 'typebox'
import type { Architecture } from '../architecture.ts'
import { Flag } from '../records.ts'

/**
 * What every layer hands on as it is: request, record, agent, driver. A field that only passes through is declared in this
 * file, here and as clients ask for it, and used by a driver; nothing in between names it. Fields and no schema, because
 * schemas are empty objects in the command line and the console.
 */
export const machineFields = {
  netBoost: t.Boolean(),
  legacyIO: t.Boolean(),
  gpuPassthrough: t.Boolean(),
  iso: t.Optional(t.String()),
  systemSerial: t.Optional(t.String()),
}
const VmMachine = t.Object(machineFields)
export type VmMachine = Readonly<t.Static<typeof VmMachine>>
export const machineDefaults: VmMachine = { netBoost: true, legacyIO: false, gpuPassthrough: false }

const machineNames = Object.keys(machineFields) as readonly (keyof VmMachine)[]

/** These fields of it alone. A record that was written before there was one of them has its default. */
export function machineOf(from: Partial<VmMachine>): VmMachine {
  const machine: Record<string, unknown> = { ...machineDefaults }
  for (const name of machineNames) if (from[name] !== undefined) machine[name] = from[name]
  return machine as unknown as VmMachine
}

/** In place of a serial number: one that no other VM has. */
export const randomSerial = 'random'

export const schedulers = ['default', 'most-allocated'] as const

/**
 * As it is asked for: shared by deployments and VM configurations. Zero and false mean "not set" where clients of the
 * original always send them.
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
  displayWidth: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: 'Default: 1920' })),
  displayHeight: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: 'Default: 1080' })),
  displayDPI: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: 'Default: 96' })),
  displayDpi: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: 'Same as displayDPI' })),
} satisfies Record<keyof VmMachine, t.TSchema> & t.TProperties
const VmShapeInput = t.Object(vmShapeFields)
export type VmShapeInput = t.Static<typeof VmShapeInput>

/** Whole. */
export interface VmShape extends VmMachine {
  readonly image: string
  readonly architecture: Architecture
  readonly cpu: number
  /** 0 is automatic. */
  readonly memoryMiB: number
  readonly node?: string
  readonly tag?: string
  readonly tagRequired: boolean
  readonly scheduler: (typeof schedulers)[number]
  readonly vncConsole: boolean
  readonly display: { readonly width: number; readonly height: number; readonly dpi: number }
}
