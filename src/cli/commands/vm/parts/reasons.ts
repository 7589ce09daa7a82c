// Why a VM is not yet in the expected state: the messages of its record, on one line.
import type { Vm } from '../../../../api/vms/vms.ts'
import type { Context } from '../../../command.ts'
import { visible } from '../../../output/output.ts'

/** What keeps a VM off every node; undefined when nothing does. */
export const pendingReason = ({ status, conditions }: Vm): string | undefined =>
  status === 'Pending'
    ? conditions
        .filter((condition) => condition.status === 'False')
        .map((condition) => condition.message)
        .join('; ') || undefined
    : undefined

/** More than these would bury the table. */
const maxNotes = 5

/** Below a table: why VMs of it are pending or failed. */
export function noteReasons(context: Context, vms: readonly Vm[]): void {
  const notes = vms.flatMap((vm) => {
    const pending = pendingReason(vm)
    if (pending) return [`vm ${vm.name} is pending: ${pending}`]
    return vm.errorMessage ? [`vm ${vm.name}: ${vm.errorMessage}`] : []
  })
  for (const note of notes.slice(0, maxNotes)) context.note(visible(note))
  const left = notes.length - maxNotes
  if (left > 0) context.note(`${left} more; "${context.host.calledAs} vm list NAME" tells why`)
}
