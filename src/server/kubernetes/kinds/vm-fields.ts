// Fields that VirtualMachineInstance and VirtualMachineConfig share, and how they become those of the REST API.
import * as t from 'typebox'
import type { VmShape } from '../../../api/vms/vm-shape.ts'
import { given, type KubeObject, type ObjectFields, type PrinterColumn } from './kind.ts'
import { annotationOf, creatorAnnotation, stringOf } from './orka.ts'

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
  displayWidth: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: 'Default: 1920' })),
  displayHeight: t.Optional(t.Integer({ minimum: 0, maximum: 16_384, description: 'Default: 1080' })),
  displayDPI: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: 'Default: 96' })),
}

/** As the record has it. */
export const shownShape = (shape: VmShape): ObjectFields =>
  given({
    image: shape.image,
    cpu: shape.cpu,
    memory: shape.memoryMiB === 0 ? undefined : Number((shape.memoryMiB / 1_024).toFixed(2)),
    nodeName: shape.node,
    iso: shape.iso,
    systemSerial: shape.systemSerial,
    tag: shape.tag,
    tagRequired: shape.tagRequired,
    vncConsole: shape.vncConsole,
    scheduler: shape.scheduler,
    netBoost: shape.netBoost,
    legacyIO: shape.legacyIO,
    gpuPassthrough: shape.gpuPassthrough,
    displayWidth: shape.display.width,
    displayHeight: shape.display.height,
    displayDPI: shape.display.dpi,
  })

/** What clients of the original always send empty counts as not said. */
export function askedShape(spec: ObjectFields): ObjectFields {
  const { scheduler } = spec
  return given({
    image: stringOf(spec.image),
    cpu: spec.cpu,
    memory: spec.memory,
    node: stringOf(spec.nodeName),
    iso: stringOf(spec.iso),
    systemSerial: stringOf(spec.systemSerial),
    tag: stringOf(spec.tag),
    tagRequired: spec.tagRequired,
    vncConsole: spec.vncConsole,
    scheduler: scheduler === 'default-scheduler' ? 'default' : stringOf(scheduler),
    netBoost: spec.netBoost,
    legacyIO: spec.legacyIO,
    gpuPassthrough: spec.gpuPassthrough,
    displayWidth: spec.displayWidth,
    displayHeight: spec.displayHeight,
    displayDPI: spec.displayDPI,
  })
}

/** Fields of refusals → where they are in an object. */
export const shapeFieldPaths = { node: 'spec.nodeName', name: 'metadata.name', labels: 'metadata.labels' }

type Cell = readonly [name: string, type: PrinterColumn['type'], path: string, isWide?: boolean]

/** A column of a field in the spec or the status. */
export const column = ([name, type, path, isWide = false]: Cell): PrinterColumn => ({
  name,
  type,
  description: path,
  isWide,
  cell: (object: KubeObject) =>
    path.split('.').reduce<unknown>((value, step) => (value as ObjectFields | undefined)?.[step], object),
})

export const ownerColumn: PrinterColumn = {
  name: 'Owner',
  type: 'string',
  description: 'Who created it',
  isWide: true,
  cell: (object) => annotationOf(object, creatorAnnotation),
}
