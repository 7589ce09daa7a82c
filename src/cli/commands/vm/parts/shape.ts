// The options for size and placement that "vm deploy" and "vm-config create" share.
import { schedulers } from '../../../../api/vms/vm-shape.ts'
import { isTag } from '../../../../rules/names.ts'
import type { Options, Values } from '../../../command.ts'
import { UsageError } from '../../../line/usage.ts'

const pixels = { type: 'integer', value: 'PIXELS', min: 1, max: 16_384 } as const

export const shapeOptions = {
  cpu: { type: 'integer', short: 'c', value: 'CORES', min: 1, max: 1_024, description: 'Cores; 3 when left out' },
  memory: {
    type: 'string',
    short: 'm',
    value: 'GIB',
    defaultText: "the cores' share of its node",
    description: 'Memory in GiB, with one decimal at most',
  },
  node: { type: 'string', value: 'NODE', description: 'On this node only' },
  tag: { type: 'string', value: 'TAG', description: 'Rather on a node with this tag' },
  'tag-required': { type: 'boolean', description: 'Only on a node with the tag' },
  scheduler: { type: 'choice', choices: schedulers, description: 'Balance the nodes, or fill one after the other' },
  iso: { type: 'string', value: 'ISO', description: 'Intel: attach this ISO' },
  'system-serial': { type: 'string', value: 'SERIAL', description: 'Serial number (Intel); random: a new one' },
  gpu: { type: 'boolean', short: 'g', description: 'Intel: pass a GPU through; needs --disable-vnc' },
  'disable-vnc': { type: 'boolean', description: 'No screen by VNC' },
  'disable-net-boost': { type: 'boolean', description: 'Intel: no fast network devices' },
  'legacy-io': { type: 'boolean', description: 'Intel: old disk devices' },
  'display-width': { ...pixels, description: 'Width of the screen; 1920 when left out' },
  'display-height': { ...pixels, description: 'Height of the screen; 1080 when left out' },
  'display-dpi': {
    type: 'integer',
    value: 'DPI',
    min: 1,
    max: 1_000,
    description: 'Dots per inch of the screen; 96 when left out',
  },
} as const satisfies Options

/** The body's fields, without those that were not given: they would override a configuration. */
export function shapeOf(options: Values<Record<never, never>, typeof shapeOptions>['options']) {
  const { tag } = options
  if (tag !== undefined && !isTag(tag))
    throw new UsageError(`--tag "${tag}" is not a tag`, 'at most 63 letters, digits, dashes, underscores and periods')
  return defined({
    cpu: options.cpu,
    memory: memoryOf(options.memory),
    node: options.node,
    tag,
    tagRequired: whenSet(options['tag-required'], true),
    scheduler: options.scheduler,
    iso: options.iso,
    systemSerial: options['system-serial'],
    gpuPassthrough: whenSet(options.gpu, true),
    vncConsole: whenSet(options['disable-vnc'], false),
    netBoost: whenSet(options['disable-net-boost'], false),
    legacyIO: whenSet(options['legacy-io'], true),
    displayWidth: options['display-width'],
    displayHeight: options['display-height'],
    displayDPI: options['display-dpi'],
  })
}

const whenSet = <T>(isSet: boolean, value: T): T | undefined => (isSet ? value : undefined)

type Defined<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> }

/** Without the fields that are undefined. */
export const defined = <T extends object>(fields: T): Defined<T> =>
  Object.fromEntries(Object.entries(fields).filter((field) => field[1] !== undefined)) as Defined<T>

function memoryOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const gibibytes = /^\d{1,5}(\.\d)?$/.test(text) ? Number(text) : 0
  if (gibibytes > 0) return gibibytes
  throw new UsageError(`--memory "${text}" is not a number of GiB`, 'for example --memory 4.8')
}
