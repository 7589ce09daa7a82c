// What the pages of VMs work out without being drawn: what may be done by whom and why not, what was made of a VM.
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

export const vmActions = [
  'start',
  'stop',
  'suspend',
  'resume',
  'revert',
  'resize',
  'save',
  'commit',
  'push',
] as const satisfies readonly VmAction[]

/** In the background: the VM accepts other actions in the meantime. */
const background: ReadonlySet<string> = new Set(['save', 'commit', 'push'])

/** Why an action is refused, in the words of the service; undefined when it is not. */
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

/** Why its screen cannot be opened. */
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

/** The service shows some VMs as Running that are not: people have to see both. */
export const hasOtherStatus = ({ status, powerState }: Vm): boolean =>
  status === 'Running' && (powerState === 'stopped' || powerState === 'suspended')

export const operationName = (kind: string): string => operationNames[kind] ?? kind
export const operationText = ({ kind, phase }: VmOperation): string => `${operationName(kind)}: ${phase}`

export function conditionText(type: string, isTrue: boolean): string {
  const [yes, no] = conditionNames[type] ?? [type, `Not ${type}`]
  return isTrue ? yes : no
}

/** `4.80Gi` → `4.8 GiB`, `0.50Gi` → `512 MiB`; `auto` until a node is chosen. */
export const memoryText = (memory: string): string => (memory === 'auto' ? 'Automatic' : longSize(memory))

/** Why a VM waits for a node. */
export const waitingReason = ({ conditions }: Vm): string | undefined => conditions.find(isWaiting)?.message

/** `image 34 %, 1.2 GiB of 3.5 GiB, 80 MiB/s`: while it runs without all of its image. */
export const arrivalText = ({ conditions }: Pick<Vm, 'conditions'>): string | undefined =>
  conditions.find(({ type, status }) => type === 'ImageReady' && status === 'False')?.message

/** Those that the page does not say above already. */
export const otherConditions = (vm: Vm): Vm['conditions'] =>
  vm.powerState === 'pending' ? vm.conditions.filter((each) => !isWaiting(each)) : vm.conditions

const isWaiting = ({ type, status }: Pick<Vm['conditions'][number], 'type' | 'status'>): boolean =>
  type === 'Scheduled' && status === 'False'

/** The line that opens a shell in it, as somebody would type it. */
export const sshCommand = ({ namespace, name }: Pick<Vm, 'namespace' | 'name'>): string =>
  `svc3 vm ssh ${name}${namespace === defaultNamespace ? '' : ` -n ${namespace}`}`

/** Images that were saved of a VM, that it was committed to, or that are being made of it. */
export function imagesOf({ namespace, name }: Vm, images: readonly Image[]): readonly Image[] {
  const vm = `${namespace}/${name}`
  return images.filter(({ parent, versions, capture }) =>
    [parent, capture, ...(versions ?? [])].some((each) => each?.vm === vm),
  )
}

export const labelsOf = (vm: Vm): string[] => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`)

/** What a search finds a VM by. */
export const textOf = (vm: Vm): string =>
  [vm.name, vm.namespace, vm.image, vm.node ?? '', vm.owner, vm.powerState, ...labelsOf(vm)].join(' ')

/** Keys that are no letters, by their X11 symbols. */
const namedKeys: Readonly<Record<string, number>> = { '\n': 0xff0d, '\r': 0xff0d, '\t': 0xff09, '\b': 0xff08 }

/** A letter as an X11 key symbol, which is how VNC names keys: Latin-1 is its own, all others have a mark. */
export function keysymOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  return namedKeys[character] ?? (code < 0x100 ? code : 0x0100_0000 + code)
}

type Step = 'requested' | 'placed' | 'claimed' | 'started' | 'booted'

interface TimelineStep {
  readonly step: Step
  readonly at: string | undefined
  /** Since the step before. */
  readonly tookMs: number | undefined
  /** It has not come to this yet. */
  readonly isOpen: boolean
}

/** The steps of a deployment up to the one that it is at. */
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
    // What failed or was stopped does not wait for anything.
    const isWaiting = ['pending', 'starting', 'running'].includes(powerState)
    if (at !== undefined) steps.push({ step, at, tookMs, isOpen: false })
    else {
      if (isWaiting) steps.push({ step, at, tookMs, isOpen: true })
      break
    }
  }
  return steps
}

/** `team=ios, owner-`: labels to set and to remove. */
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
