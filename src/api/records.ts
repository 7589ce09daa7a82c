// Pieces that records of several kinds share.
import * as t from 'typebox'
import { architectures } from './architecture.ts'

export const ResourceVersion = t.String({ description: 'Changes with every change of the record' })
export const ExpectedVersion = t.Optional(
  t.String({ minLength: 1, maxLength: 32, description: 'Only when the record still has this resourceVersion' }),
)
export const Timestamp = t.String({ format: 'date-time', description: 'RFC 3339, UTC, seconds' })

export const Architecture = t.Enum(architectures, { description: 'arm64: Apple silicon. amd64: Intel' })

export const Flag = (description: string) => t.Optional(t.Boolean({ description }))

/** In place of a serial number: one that no other VM has. */
export const randomSerial = 'random'

export const schedulers = ['default', 'most-allocated'] as const

/**
 * What a VM is made of and where it goes: shared by deployments and VM configurations. Zero and false mean "not set"
 * where clients of the original always send them.
 */
export const VmShape = {
  cpu: t.Optional(t.Integer({ minimum: 0, maximum: 1024, description: 'Cores; 3 when left out' })),
  memory: t.Optional(
    t.Number({
      minimum: 0,
      maximum: 65_536,
      description: "GiB, one decimal; 0: the cores' share of the node's memory",
    }),
  ),
  node: t.Optional(t.String({ maxLength: 256, description: 'Only there' })),
  tag: t.Optional(t.String({ maxLength: 256, description: 'Nodes with it are preferred' })),
  tagRequired: Flag('Only nodes with the tag'),
  scheduler: t.Optional(
    t.String({ maxLength: 64, description: '`default` balances, `most-allocated` fills one node after the other' }),
  ),
  vncConsole: Flag('A screen by VNC; true when left out'),
  netBoost: Flag('Intel: fast network devices; true when left out'),
  legacyIO: Flag('Intel: old disk devices'),
  gpuPassthrough: Flag('Intel: needs `vncConsole: false` and a node that has a GPU'),
  iso: t.Optional(t.String({ maxLength: 256, description: 'Intel: an ISO to attach' })),
  systemSerial: t.Optional(
    t.String({ maxLength: 64, description: "Intel: the machine's serial number; `random`: a new one, also on Macs" }),
  ),
  displayWidth: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: '1920 when left out' })),
  displayHeight: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: '1080 when left out' })),
  displayDPI: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: '96 when left out' })),
  displayDpi: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: 'The same as displayDPI' })),
}

/** How an image is written into a registry: ours, or as tart does. */
export const pushFormats = ['svc3', 'tart'] as const
export type PushFormat = (typeof pushFormats)[number]
