// What may be done to a VM, by whom, and why not: the table of src/rules, asked about what the page shows. Pure.
import type { Vm } from '../../../src/api/vms/vms.ts'
import { mayDelete } from '../../../src/rules/ownership.ts'
import { refuseAction, type VmAction } from '../../../src/rules/vm-actions.ts'
import { texts } from '../../texts.ts'

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
  return isAllowed ? undefined : texts.actions.delete.notYours(owner)
}

/** Why its screen cannot be opened. */
export function reasonAgainstScreen(vm: Vm): string | undefined {
  if (vm.powerState !== 'running') return texts.actions.notRunning(vm.powerState)
  return vm.vnc === undefined ? texts.actions.noScreen : undefined
}

export const reasonAgainstTerminal = (vm: Vm): string | undefined =>
  vm.powerState === 'running' ? undefined : texts.actions.notRunning(vm.powerState)

/** A VM that waits says why, node by node. */
export function waitingReasons(vm: Vm): readonly string[] {
  const scheduled = vm.conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')
  return scheduled ? scheduled.message.split('; ') : []
}
