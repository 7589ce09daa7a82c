// Which actions are possible on a VM, and facts of a VM as text.
import type { Image } from '../../../src/api/images/images.ts'
import type { Vm, VmOperation } from '../../../src/api/vms/vms.ts'
import { type LabelChange, parseLabelChange } from '../../../src/client/relabel.ts'
import { defaultNamespace } from '../../../src/rules/names.ts'
import { mayDelete } from '../../../src/rules/ownership.ts'
import { longSize } from '../../../src/rules/sizes.ts'
import { refuseAction, type VmAction } from '../../../src/rules/vm-actions.ts'

const conditionNames = {
  Scheduled: ['Scheduled', 'Not scheduled'],
  PortsFree: ['Ports free', 'Port in use'],
  NodeReady: ['Node ready', 'Node not ready'],
  Booted: ['Booted', 'Not booted'],
  GuestReachable: ['Reachable', 'Not reachable'],
  ImageReady: ['Image on the node', 'Image arriving'],
} as Readonly<Record<string, readonly [yes: string, no: string]>>

const operationNames = {
  deploy: 'Deploying',
  start: 'Starting',
  stop: 'Stopping',
  suspend: 'Suspending',
  resume: 'Resuming',
  revert: 'Reverting',
  resize: 'Resizing',
  save: 'Saving',
  commit: 'Committing',
  push: 'Pushing',
  capture: 'Taking snapshot',
  delete: 'Deleting',
} as Readonly<Record<string, string>>

export const powerWords = {
  pending: 'Pending',
  starting: 'Starting',
  running: 'Running',
  stopped: 'Stopped',
  suspended: 'Suspended',
  failed: 'Failed',
  unknown: 'Unknown',
}

/** Operations during which the VM accepts other actions. */
const background: ReadonlySet<string> = new Set(['save', 'commit', 'push'])

/** The message with which the service would refuse the action; undefined if it is possible. */
export function reasonAgainst(action: VmAction, vm: Vm): string | undefined {
  const { name, namespace, architecture, powerState, operation } = vm
  const busyWith = operation && !background.has(operation.kind) ? operation.kind : undefined
  return refuseAction(action, { name, namespace, architecture, powerState, busyWith })?.message
}

export function reasonAgainstDeleting(
  owner: string,
  person: { readonly name: string; readonly admin: boolean } | undefined,
): string | undefined {
  const isAllowed = person !== undefined && mayDelete(person.admin ? 'admin' : 'dev', person.name, owner)
  return isAllowed ? undefined : `Only ${owner} or an administrator can delete this`
}

export function reasonAgainstScreen(vm: Vm): string | undefined {
  if (vm.powerState !== 'running') return reasonAgainstTerminal(vm)
  return vm.vnc === undefined ? 'This VM was deployed without a screen' : undefined
}

export function reasonAgainstTerminal({ powerState }: Vm): string | undefined {
  if (powerState === 'running') return undefined
  const state = powerWords[powerState]
  return powerState === 'stopped'
    ? `This VM is ${state.toLowerCase()}. Start it first`
    : `This VM is ${state.toLowerCase()}`
}

/** The API reports the status Running for some VMs that are stopped or suspended, so both are shown. */
export const hasOtherStatus = ({ status, powerState }: Vm): boolean =>
  status === 'Running' && (powerState === 'stopped' || powerState === 'suspended')

export const operationName = (kind: string): string => operationNames[kind] ?? kind
export const operationText = ({ kind, phase }: VmOperation): string => `${operationName(kind)}: ${phase}`

export function conditionText(type: string, isTrue: boolean): string {
  const [yes, no] = conditionNames[type] ?? [type, `Not ${type}`]
  return isTrue ? yes : no
}

/** `4.80Gi` becomes `4.8 GiB`; `auto` until the VM has a node. */
export const memoryText = (memory: string): string => (memory === 'auto' ? 'Automatic' : longSize(memory))

export const waitingReason = ({ conditions }: Vm): string | undefined => conditions.find(isWaiting)?.message

/** `image 34 %, 1.2 GiB of 3.5 GiB, 80 MiB/s`, for a VM that runs while its image is still downloaded. */
export const arrivalText = ({ conditions }: Pick<Vm, 'conditions'>): string | undefined =>
  conditions.find(({ type, status }) => type === 'ImageReady' && status === 'False')?.message

/** Returns all conditions but the one that the notice at the top explains. */
export const otherConditions = (vm: Vm): Vm['conditions'] =>
  vm.powerState === 'pending' ? vm.conditions.filter((each) => !isWaiting(each)) : vm.conditions

const isWaiting = ({ type, status }: Pick<Vm['conditions'][number], 'type' | 'status'>): boolean =>
  type === 'Scheduled' && status === 'False'

export const sshCommand = ({ namespace, name }: Pick<Vm, 'namespace' | 'name'>): string =>
  `svc3 vm ssh ${name}${namespace === defaultNamespace ? '' : ` -n ${namespace}`}`

/** Images saved from or committed by this VM, or being captured from it. */
export function imagesOf({ namespace, name }: Vm, images: readonly Image[]): readonly Image[] {
  const vm = `${namespace}/${name}`
  return images.filter(({ parent, versions, capture }) =>
    [parent, capture, ...(versions ?? [])].some((each) => each?.vm === vm),
  )
}

export const labelsOf = (vm: Vm): string[] => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`)

export const textOf = (vm: Vm): string =>
  [vm.name, vm.namespace, vm.image, vm.node ?? '', vm.owner, vm.powerState, ...labelsOf(vm)].join(' ')

/** X11 keysyms of control characters. */
const namedKeys: Readonly<Record<string, number>> = { '\n': 0xff0d, '\r': 0xff0d, '\t': 0xff09, '\b': 0xff08 }

/** VNC uses X11 keysyms: the code itself for Latin-1, the code with a prefix for other characters. */
export function keysymOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  return namedKeys[character] ?? (code < 0x100 ? code : 0x0100_0000 + code)
}

type Step = 'requested' | 'placed' | 'claimed' | 'started' | 'booted'

interface TimelineStep {
  readonly step: Step
  readonly at: string | undefined
  /** The time since the previous step. */
  readonly tookMs: number | undefined
  /** Whether the VM still waits for this step. */
  readonly isOpen: boolean
}

/** The finished steps of a deployment and the one it waits for. */
export function timelineOf({ timeline, warm, powerState, deployDate }: Vm, nowMs: number): readonly TimelineStep[] {
  if (!timeline) return [{ step: 'requested', at: deployDate, tookMs: undefined, isOpen: false }]
  const { requestedAt, placedAt, startedAt, bootedAt } = timeline
  const known: readonly (readonly [Step, string | undefined])[] = [
    ['requested', requestedAt],
    [warm === undefined ? 'placed' : 'claimed', placedAt],
    ['started', startedAt],
    ['booted', bootedAt],
  ]
  const steps: TimelineStep[] = []
  let before: number | undefined
  for (const [step, at] of known) {
    const sinceMs = before
    before = at === undefined ? undefined : Date.parse(at)
    const tookMs = sinceMs === undefined ? undefined : Math.max(0, (before ?? nowMs) - sinceMs)
    // Failed and stopped VMs wait for nothing.
    const isWaiting = ['pending', 'starting', 'running'].includes(powerState)
    if (at !== undefined) steps.push({ step, at, tookMs, isOpen: false })
    else {
      if (isWaiting) steps.push({ step, at, tookMs, isOpen: true })
      break
    }
  }
  return steps
}

/** Parses `team=ios, owner-`. */
const typedLabels = (typed: string): readonly string[] =>
  typed
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')

export function labelFault(typed: string): string | undefined {
  const texts = typedLabels(typed)
  const bad = texts.find((each) => !parseLabelChange(each))
  if (bad !== undefined) return `Invalid label "${bad}"`
  return texts.length === 0 ? 'Enter at least one label' : undefined
}

export const labelChanges = (typed: string): readonly LabelChange[] =>
  typedLabels(typed).flatMap((each) => parseLabelChange(each) ?? [])
