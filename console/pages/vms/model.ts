// What the pages of VMs work out without being drawn: what may be done by whom and why not, filters, what was made of a VM.
import type { Image } from '../../../src/api/images/images.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { mayDelete } from '../../../src/rules/ownership.ts'
import { refuseAction, type VmAction } from '../../../src/rules/vm-actions.ts'
import { actionTexts } from './texts.ts'

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

/** Goes on in the background: the VM itself is free meanwhile. */
const background: ReadonlySet<string> = new Set(['save', 'commit', 'push'])

/** Why an action is refused, in the words of the service; undefined when it is not. */
export function reasonAgainst(action: VmAction, vm: Vm): string | undefined {
  const { name, architecture, powerState, operation } = vm
  const busyWith = operation && !background.has(operation.kind) ? operation.kind : undefined
  return refuseAction(action, { name, architecture, powerState, busyWith })?.message
}

export function reasonAgainstDeleting(
  owner: string,
  person: { readonly name: string; readonly admin: boolean } | undefined,
): string | undefined {
  const isAllowed = person !== undefined && mayDelete(person.admin ? 'admin' : 'dev', person.name, owner)
  return isAllowed ? undefined : actionTexts.delete.notYours(owner)
}

/** Why its screen cannot be opened. */
export function reasonAgainstScreen(vm: Vm): string | undefined {
  if (vm.powerState !== 'running') return actionTexts.notRunning(vm.powerState)
  return vm.vnc === undefined ? actionTexts.noScreen : undefined
}

export const reasonAgainstTerminal = (vm: Vm): string | undefined =>
  vm.powerState === 'running' ? undefined : actionTexts.notRunning(vm.powerState)

/** A VM that waits says why, node by node. */
export function waitingReasons(vm: Vm): readonly string[] {
  const scheduled = vm.conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')
  return scheduled ? scheduled.message.split('; ') : []
}

/** Images that were saved of a VM, that it was committed to, or that are being made of it. */
export function imagesOf({ namespace, name }: Vm, images: readonly Image[]): readonly Image[] {
  const vm = `${namespace}/${name}`
  return images.filter(({ parent, versions, capture }) =>
    [parent, capture, ...(versions ?? [])].some((each) => each?.vm === vm),
  )
}

export interface VmFilter {
  readonly search: string
  readonly node: string
  readonly owner: string
  /** `key=value` */
  readonly label: string
  readonly state: string
}

export const noFilter: VmFilter = { search: '', node: '', owner: '', label: '', state: '' }

export const labelsOf = (vm: Vm): string[] => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`)

const textOf = (vm: Vm): string =>
  [vm.name, vm.namespace, vm.image, vm.node ?? '', vm.owner, vm.powerState, ...labelsOf(vm)].join(' ').toLowerCase()

export function filterVms(vms: readonly Vm[], filter: VmFilter): readonly Vm[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean)
  const { node, owner, label, state } = filter
  if (words.length === 0 && !node && !owner && !label && !state) return vms
  return vms.filter((vm) => {
    if (node && vm.node !== node) return false
    if (owner && vm.owner !== owner) return false
    if (state && vm.powerState !== state) return false
    if (label && !labelsOf(vm).includes(label)) return false
    const text = words.length === 0 ? '' : textOf(vm)
    return words.every((word) => text.includes(word))
  })
}

/** What the filters offer: values that occur, in order. */
export const valuesOf = (vms: readonly Vm[], of: (vm: Vm) => string | readonly string[] | undefined): string[] =>
  [...new Set(vms.flatMap((vm) => of(vm) ?? []))].sort()

/** The address keeps the filters, so that a link shows the same. */
export function filterFromQuery(query: string): VmFilter {
  const params = new URLSearchParams(query)
  const keys = Object.keys(noFilter) as (keyof VmFilter)[]
  return Object.fromEntries(keys.map((key) => [key, params.get(key) ?? ''])) as unknown as VmFilter
}

export function queryFromFilter(filter: VmFilter): string {
  const given = Object.entries(filter).filter(([, value]) => value !== '')
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

/** Keys that are no letters, by their X11 symbols. */
const namedKeys: Readonly<Record<string, number>> = { '\n': 0xff0d, '\r': 0xff0d, '\t': 0xff09, '\b': 0xff08 }

/** A letter as an X11 key symbol, which is how VNC names keys: Latin-1 is its own, all others have a mark. */
export function keysymOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  return namedKeys[character] ?? (code < 0x100 ? code : 0x0100_0000 + code)
}
