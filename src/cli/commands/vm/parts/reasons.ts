// Explains why a VM is not in the expected state, from the conditions of its record.
import type { Vm } from '../../../../api/vms/vms.ts'
import { isGuestReachable, reachProblem } from '../../../../rules/guest-reach.ts'
import type { Context } from '../../../command.ts'
import { noteFew } from '../../../note-few.ts'

/** Why the VM is pending; undefined if it is not. */
export const pendingReason = ({ status, conditions }: Vm): string | undefined =>
  status === 'Pending'
    ? conditions
        .filter((condition) => condition.status === 'False')
        .map((condition) => condition.message)
        .join('; ') || undefined
    : undefined

const bootOf = ({ conditions }: Vm) => conditions.find(({ type }) => type === 'Booted')

/** Whether SSH has answered. */
export const hasBooted = (vm: Vm): boolean => bootOf(vm)?.status === 'True'

/** Returns whether the VM has booted, as text; undefined if the VM is not running. */
export function bootText(vm: Vm): string | undefined {
  const known = bootOf(vm)
  if (!known) return vm.powerState === 'running' ? 'not yet: SSH has not answered' : undefined
  return known.status === 'True' ? 'yes' : `no. ${known.message}`
}

/** Whether the guest can be reached, and what to do; undefined while that is unknown. */
export function reachText(vm: Vm): string[] | undefined {
  const problem = reachProblem(vm)
  return problem ? [`no: ${problem.what}`, problem.next] : isGuestReachable(vm) ? ['yes'] : undefined
}

export function reachNotes(vm: Vm): string[] {
  const problem = reachProblem(vm)
  return problem ? [`VM ${vm.name} is running, but cannot be reached: ${problem.what}`, problem.next] : []
}

/** How much of the image is on the node, while the VM runs without all of it. */
export const arrivalText = ({ conditions }: Vm): string | undefined =>
  conditions.find(({ type, status }) => type === 'ImageReady' && status === 'False')?.message

export const arrivalNotes = (vm: Vm): string[] => {
  const text = arrivalText(vm)
  return text === undefined ? [] : [`VM ${vm.name} is running; ${text}`]
}

export const isNodeLost = ({ conditions }: Vm): boolean =>
  conditions.some(({ type, status }) => type === 'NodeReady' && status === 'False')

/** Why a node does not take the VM. */
export const verdictText = ({ name, reason }: NonNullable<Vm['nodes']>[number]): string => `${name}: ${reason}`

/** Prints below a table why VMs are pending, have failed or do not boot. */
export function noteReasons(context: Context, vms: readonly Vm[], sameTargetFlags: string): void {
  const notes = vms.flatMap((vm) => {
    const pending = pendingReason(vm)
    if (pending) return [`VM ${vm.name} is pending: ${pending}`]
    const boot = bootOf(vm)
    const unbooted = boot?.status === 'False' ? boot.message : undefined
    const problem = vm.errorMessage ?? reachProblem(vm)?.what ?? unbooted
    return problem ? [`VM ${vm.name}: ${problem}`] : arrivalNotes(vm)
  })
  noteFew(context, notes, `run svc3 vm show NAME${sameTargetFlags} to see why`)
}
