// The fields that VirtualMachineInstance and VirtualMachineConfig share, and their translation to and from the REST API.
import * as t from 'typebox'
import type { VmShape } from '../../../api/vms/vm-shape.ts'
import { defined } from '../../../platform/defined.ts'
import type { ObjectFields } from './kind.ts'

const text = (description: string, maxLength = 256) => t.Optional(t.String({ maxLength, description }))
const flag = (description: string) => t.Optional(t.Boolean({ description }))

export const shapeSchema = {
  image: text('Image of the VM, or a reference to one in a registry', 512),
  cpu: t.Optional(t.Integer({ minimum: 0, maximum: 1_024, description: 'Number of CPU cores. Default: 3' })),
  memory: t.Optional(
    t.Number({ minimum: 0, maximum: 65_536, description: 'Memory in GiB. Default: in proportion to the cores' }),
  ),
  nodeName: text('Run only on this node'),
  iso: text('ISO to attach (Intel)'),
  systemSerial: text('Serial number (Intel)', 64),
  tag: text('Prefer nodes with this tag'),
  tagRequired: flag('Use only nodes with the tag'),
  vncConsole: flag('Screen over VNC. Default: true'),
  scheduler: text('default balances, most-allocated fills nodes one by one', 64),
  netBoost: flag('Fast network devices (Intel). Default: true'),
  legacyIO: flag('Legacy disk devices (Intel)'),
  gpuPassthrough: flag('GPU of the node (Intel)'),
  directories: t.Optional(
    t.Array(t.String({ maxLength: 1_024 }), { maxItems: 16, description: 'Folders of the host' }),
  ),
  nested: flag('Nested virtualization (Apple silicon)'),
  rosetta: text('Tag of a share with Rosetta (Apple silicon)', 36),
  displayWidth: t.Optional(t.Integer({ minimum: 0, maximum: 3_840, description: '320 to 3840. Default: 1920' })),
  displayHeight: t.Optional(t.Integer({ minimum: 0, maximum: 2_160, description: '480 to 2160. Default: 1080' })),
  displayDPI: t.Optional(t.Integer({ minimum: 0, maximum: 320, description: '60 to 320. Default: 96' })),
}

/** The spec of a stored shape. */
export function shapeSpec(shape: VmShape): ObjectFields {
  const { memoryMiB, display } = shape
  const fields: ObjectFields = {
    ...shape,
    memory: memoryMiB === 0 ? undefined : Number((memoryMiB / 1_024).toFixed(2)),
    nodeName: shape.node,
    displayWidth: display.width,
    displayHeight: display.height,
    displayDPI: display.dpi,
  }
  return defined(Object.fromEntries(Object.keys(shapeSchema).map((name) => [name, fields[name]])))
}

/** The fields of a REST body for a spec. Clients of Orka send empty text for fields that are not set. */
export function shapeInput(spec: ObjectFields): ObjectFields {
  const entries = Object.keys(shapeSchema).map((name) => [name, spec[name] === '' ? undefined : spec[name]])
  const { nodeName, scheduler, ...fields } = Object.fromEntries(entries)
  return defined({ ...fields, node: nodeName, scheduler: scheduler === 'default-scheduler' ? 'default' : scheduler })
}

/** Fields of refusals that have another name or place in an object. */
export const shapeFieldPaths = { node: 'spec.nodeName', name: 'metadata.name', labels: 'metadata.labels' }
