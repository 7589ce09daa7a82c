// Applies the rules for actions to a VM's record.
import { conflict } from '../../api/errors.ts'
import { refuseAction, type VmAction } from '../../rules/vm-actions.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { isFailedDeployment } from '../../store/records/node-vms.ts'
import { busyWith } from './vm-view.ts'

export function assertMay(action: VmAction, record: VmRecord): void {
  const { name, namespace, shape, observed } = record
  if (isFailedDeployment(record))
    throw conflict('vms', name, 'failed to deploy and is no longer on a node', 'Delete it and deploy another VM')
  const subject = {
    name,
    namespace,
    architecture: shape.architecture,
    powerState: observed.power,
    busyWith: busyWith(record),
  }
  const refusal = refuseAction(action, subject)
  if (refusal) throw refusal
}
