// The options for size and placement that "vm deploy" and "vm-config create" share.

import type { VmDeployment } from '../../../../api/vms/vm-deployment.ts'
import { displayLimits, schedulers } from '../../../../api/vms/vm-shape.ts'
import { isTag } from '../../../../rules/names.ts'
import type { Options, OptionValues } from '../../../command.ts'
import { UsageError } from '../../../line/usage.ts'

const pixels = { type: 'integer', value: 'PIXELS' } as const

export const shapeOptions = {
  cpu: {
    type: 'integer',
    short: 'c',
    value: 'CORES',
    min: 1,
    max: 1_024,
    description: 'Number of CPU cores (default 3)',
  },
  memory: {
    type: 'gibibytes',
    short: 'm',
    value: 'GIB',
    max: 99_999,
    defaultText: "the cores' share of the node",
    description: 'Memory in GiB (GB means GiB), such as 8, 4.8 or 8G',
  },
  node: { type: 'string', value: 'NODE', description: 'Use only this node' },
  tag: { type: 'string', value: 'TAG', description: 'Prefer nodes with this tag' },
  'tag-required': { type: 'boolean', description: 'Use only nodes with the tag' },
  scheduler: { type: 'choice', choices: schedulers, description: 'Balance the nodes, or fill them one by one' },
  iso: { type: 'string', value: 'ISO', description: 'Attach this ISO (Intel)' },
  'system-serial': { type: 'string', value: 'SERIAL', description: 'Serial number, or random for a new one (Intel)' },
  gpu: { type: 'boolean', short: 'g', description: 'Pass through a GPU (Intel); disables VNC' },
  'disable-vnc': { type: 'boolean', description: 'Disable VNC' },
  'disable-net-boost': { type: 'boolean', description: 'Disable fast network devices (Intel)' },
  'legacy-io': { type: 'boolean', description: 'Use legacy disk devices (Intel)' },
  dir: {
    type: 'string',
    repeatable: true,
    value: 'NAME:PATH[:ro]',
    description: 'Share this folder of the host (Apple silicon)',
  },
  nested: { type: 'boolean', description: 'Enable nested virtualization (Apple silicon)' },
  rosetta: { type: 'string', value: 'TAG', description: 'Share Rosetta with this tag (Apple silicon, Linux)' },
  'display-width': { ...pixels, ...displayLimits.width, description: 'Display width, 320 to 3840 (default 1920)' },
  'display-height': { ...pixels, ...displayLimits.height, description: 'Display height, 480 to 2160 (default 1080)' },
  'display-dpi': {
    type: 'integer',
    value: 'DPI',
    ...displayLimits.dpi,
    description: 'Display resolution in dots per inch, 60 to 320 (default 96)',
  },
} as const satisfies Options

/** The field that each option sets. An option that disables something sets its field to false. */
export const shapeFields = {
  cpu: 'cpu',
  memory: 'memory',
  node: 'node',
  tag: 'tag',
  'tag-required': 'tagRequired',
  scheduler: 'scheduler',
  iso: 'iso',
  'system-serial': 'systemSerial',
  gpu: 'gpuPassthrough',
  'disable-vnc': 'vncConsole',
  'disable-net-boost': 'netBoost',
  'legacy-io': 'legacyIO',
  dir: 'directories',
  nested: 'nested',
  rosetta: 'rosetta',
  'display-width': 'displayWidth',
  'display-height': 'displayHeight',
  'display-dpi': 'displayDPI',
} as const satisfies Record<keyof typeof shapeOptions, keyof VmDeployment>

type Shape = Pick<VmDeployment, (typeof shapeFields)[keyof typeof shapeFields]>

/** The fields of the options that were given. Others would override those of a VM configuration. */
export function requestedShape(options: OptionValues<typeof shapeOptions>): Shape {
  const { tag } = options
  if (tag !== undefined && !isTag(tag))
    throw new UsageError(`Invalid --tag "${tag}"`, 'Use up to 63 letters, digits, dashes, underscores and periods')
  const fields = Object.entries(shapeFields).flatMap(([option, field]) => {
    const value = options[option as keyof typeof shapeFields]
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) return []
    return [[field, value === true ? !option.startsWith('disable-') : value]]
  })
  return Object.fromEntries(fields)
}
