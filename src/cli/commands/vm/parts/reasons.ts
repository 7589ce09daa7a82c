// Why a VM is not yet in the expected state: the messages of its record, on one line.
import type { Vm } from '../../../../api/vms/vms.ts'
import type { Context } from '../../../command.ts'
import { noteFew } from '../../../note-few.ts'

/** What keeps a VM off every node; undefined when nothing does. */
export const pendingReason = ({ status, conditions }: Vm): string | undefined =>
  status === 'Pending'
    ? conditions
        .filter((condition) => condition.status === 'False')
        .map((condition) => condition.message)
        .join('; ') || undefined
    : undefined

/** The condition that says whether the guest has come up; undefined while nobody knows. */
const bootOf = ({ conditions }: Vm) => conditions.find(({ type }) => type === 'Booted')

/** SSH has answered. */
export const hasBooted = (vm: Vm): boolean => bootOf(vm)?.status === 'True'

/** Undefined for a VM that does not run. */
export function bootText(vm: Vm): string | undefined {
  const known = bootOf(vm)
  if (!known) return vm.powerState === 'running' ? 'not yet: SSH has not answered' : undefined
  return known.status === 'True' ? 'yes' : `no. ${known.message}`
}

/** What of its image is on its node, while it runs without all of it. */
export const arrivalText = ({ conditions }: Vm): string | undefined =>
  conditions.find(({ type, status }) => type === 'ImageReady' && status === 'False')?.message

export const arrivalNotes = (vm: Vm): string[] => {
  const text = arrivalText(vm)
  return text === undefined ? [] : [`VM ${vm.name} is running; ${text}`]
}

/** Its node has not responded for some time. */
export const isNodeLost = ({ conditions }: Vm): boolean =>
  conditions.some(({ type, status }) => type === 'NodeReady' && status === 'False')

/** What one node says about a VM that waits, or would. */
export const verdictText = ({ name, reason }: NonNullable<Vm['nodes']>[number]): string => `${name}: ${reason}`

/** Below a table: why VMs of it are pending, failed or do not boot. */
export function noteReasons(context: Context, vms: readonly Vm[], sameTargetFlags: string): void {
  const notes = vms.flatMap((vm) => {
    const pending = pendingReason(vm)
    if (pending) return [`VM ${vm.name} is pending: ${pending}`]
    const boot = bootOf(vm)
    const problem = vm.errorMessage ?? (boot?.status === 'False' ? boot.message : undefined)
    return problem ? [`VM ${vm.name}: ${problem}`] : arrivalNotes(vm)
  })
  noteFew(context, notes, `run svc3 vm show NAME${sameTargetFlags} to see why`)
}
