// Applies the rules for actions to a VM's record.
import { ApiError } from '../../api/errors.ts'
import { refuseAction, type VmAction } from '../../rules/vm-actions.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { isFailedDeployment } from '../../store/records/node-vms.ts'
import { busyWith } from './vm-view.ts'

export function assertMay(action: VmAction, record: VmRecord): void {
  const { name, namespace, shape, observed } = record
  if (isFailedDeployment(record)) throw neverRan(name)
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

const neverRan = (name: string): ApiError =>
  new ApiError('Conflict', `VM ${name} failed to deploy and is no longer on a node`, {
    kind: 'vms',
    name,
    hint: 'Delete it and deploy another VM',
  })
