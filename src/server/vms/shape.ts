// Completes the shape that a client sent: defaults, values of a configuration, overrides, validation. Zero and false
// mean "not set" where clients of Orka always send them (docs/spec.md R46).
import type { Architecture } from '../../api/architecture.ts'
import type { Cause } from '../../api/errors.ts'
import {
  displayLimits,
  machineDefaults,
  machineOf,
  randomSerial,
  schedulers,
  type VmShape,
  type VmShapeInput,
} from '../../api/vms/vm-shape.ts'
import { defined } from '../../platform/defined.ts'
import { isTag } from '../../rules/names.ts'
import { requestedMemoryMiB } from '../../rules/sizes.ts'

const defaults = {
  cpu: 3,
  memoryMiB: 0,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: true,
  ...machineDefaults,
  display: { width: 1_920, height: 1_080, dpi: 96 },
} as const

/** `from`: the VM configuration with values for fields that are not set. */
export function shapeOf(
  input: VmShapeInput,
  image: { readonly name: string; readonly architecture: Architecture },
  from?: VmShape,
): VmShape {
  const base = { ...defaults, ...from }
  const values: VmShapeInput = Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined && value !== ''),
  )
  // Some clients always send false for these two, which must not override a configuration.
  const alwaysSent = (value: boolean | undefined, old: boolean): boolean =>
    value === undefined || (from !== undefined && value === false) ? old : value
  const { node, tag } = { ...base, ...values }
  const isForArm = image.architecture === 'arm64'
  const machine = machineOf({ ...base, ...values })
  // Guests on Apple silicon always use the GPU, so it cannot be passed through.
  const gpuPassthrough = machine.gpuPassthrough && !isForArm
  return {
    image: image.name,
    architecture: image.architecture,
    cpu: input.cpu || base.cpu,
    memoryMiB: input.memory ? requestedMemoryMiB(input.memory) : base.memoryMiB,
    ...defined({ node, tag }),
    tagRequired: input.tagRequired ?? base.tagRequired,
    scheduler: (input.scheduler || base.scheduler) as VmShape['scheduler'],
    ...machine,
    gpuPassthrough,
    // With a passed-through GPU there is no VNC console. Clients of Orka set only the GPU flag.
    vncConsole: gpuPassthrough ? false : (input.vncConsole ?? base.vncConsole),
    // Jenkins sends netBoost: false with every deployment. It has no meaning for arm64.
    netBoost: isForArm ? true : alwaysSent(input.netBoost, base.netBoost),
    legacyIO: alwaysSent(input.legacyIO, base.legacyIO),
    display: {
      width: input.displayWidth || base.display.width,
      height: input.displayHeight || base.display.height,
      dpi: input.displayDPI || input.displayDpi || base.display.dpi,
    },
  }
}

type Problem = readonly [field: string, isWrong: (shape: VmShape) => boolean, message: (shape: VmShape) => string]

const isArm = ({ architecture }: VmShape): boolean => architecture === 'arm64'

const intelOnly = (field: string, isSet: (shape: VmShape) => boolean): Problem => [
  field,
  (shape) => isArm(shape) && isSet(shape),
  ({ image }) => `${field} is for Intel-based VMs only; image ${image} is arm64`,
]

const armOnly = (field: 'directories' | 'nested' | 'rosetta'): Problem => [
  field,
  (shape) => !isArm(shape) && Boolean(shape[field]),
  ({ image }) => `${field} is for VMs on Apple silicon only; image ${image} is amd64`,
]

const displayFields = { displayWidth: 'width', displayHeight: 'height', displayDPI: 'dpi', displayDpi: 'dpi' } as const

/** Only of the request: configurations of versions before alpha.32 may have other displays. */
const displayCauses = (input: VmShapeInput): Cause[] =>
  (Object.keys(displayFields) as (keyof typeof displayFields)[]).flatMap((field) => {
    const { min, max } = displayLimits[displayFields[field]]
    const value = input[field] || min
    const message = `${field} must be ${min} to ${max}`
    return value < min || value > max ? [{ field, reason: 'FieldValueInvalid', message }] : []
  })

const directoryForm = /^([A-Za-z0-9][\w-]{0,63}):\/[^:,\p{Cc}]*(:ro)?$/u

/** tart separates the parts by colons. The name `svc3` is that of the folder with metadata. */
function areDirectories(directories: readonly string[]): boolean {
  const names = ['svc3', ...directories.map((directory) => directoryForm.exec(directory)?.[1]?.toLowerCase())]
  return !names.includes(undefined) && new Set(names).size === names.length
}

const problems: readonly Problem[] = [
  armOnly('directories'),
  armOnly('nested'),
  armOnly('rosetta'),
  [
    'directories',
    ({ directories = [] }) => !areDirectories(directories),
    () => 'directories must be NAME:/PATH or NAME:/PATH:ro, each with another name, which is not svc3',
  ],
  [
    'rosetta',
    ({ rosetta }) => rosetta !== undefined && !/^[A-Za-z0-9][\w-]{0,35}$/.test(rosetta),
    () => 'rosetta must consist of letters, digits, - and _',
  ],
  [
    'scheduler',
    ({ scheduler }) => !schedulers.includes(scheduler),
    () => `scheduler must be ${schedulers.join(' or ')}`,
  ],
  ['tag', ({ tag }) => tag !== undefined && !isTag(tag), ({ tag }) => `tag "${tag}" is not valid`],
  ['tagRequired', ({ tagRequired, tag }) => tagRequired && tag === undefined, () => 'tagRequired requires a tag'],
  ['memory', ({ memoryMiB }) => memoryMiB !== 0 && memoryMiB < 64, () => 'memory must be at least 0.1 GiB'],
  [
    'systemSerial',
    ({ systemSerial }) => systemSerial !== undefined && !/^[A-Za-z0-9._+/-]{1,64}$/.test(systemSerial),
    () => 'systemSerial must consist of letters, digits and . _ + / -',
  ],
  intelOnly('legacyIO', ({ legacyIO }) => legacyIO),
  intelOnly('iso', ({ iso }) => iso !== undefined),
  [
    'systemSerial',
    (shape) => isArm(shape) && shape.systemSerial !== undefined && shape.systemSerial !== randomSerial,
    ({ image }) =>
      `a custom systemSerial is for Intel-based VMs only; image ${image} is arm64. Use "${randomSerial}" for a new one`,
  ],
]

/** `input`: the request that the shape completes. */
export const shapeProblems = (shape: VmShape, input: VmShapeInput): Cause[] => [
  ...displayCauses(input),
  ...problems
    .filter(([, isWrong]) => isWrong(shape))
    .map(([field, , message]) => ({ field, reason: 'FieldValueInvalid' as const, message: message(shape) })),
]
