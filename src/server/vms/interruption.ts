// What interrupts a request that waits for a VM on this server. The VM itself continues.
import { ApiError } from '../../api/errors.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { staleRefusal } from '../cluster/staleness-guard.ts'

export interface InterruptionServices {
  /** Aborted when pending requests have to end. */
  readonly ending: AbortSignal
  /** Only where several servers share the store. */
  readonly staleness?: { readonly lost: AbortSignal; readonly isStale: boolean } | undefined
}

type NamedVm = Pick<VmRecord, 'name' | 'namespace'>

/** `also`: a signal of the caller. */
export const interruptionOf = ({ ending, staleness }: InterruptionServices, also?: AbortSignal): AbortSignal =>
  AbortSignal.any([ending, ...(staleness ? [staleness.lost] : []), ...(also ? [also] : [])])

export function throwIfInterrupted({ ending, staleness }: InterruptionServices, vm: NamedVm): void {
  if (ending.aborted) throw restarting(vm)
  if (staleness?.isStale) throw staleRefusal(`VM ${vm.name} continues`)
}

const restarting = ({ name, namespace }: NamedVm): ApiError =>
  new ApiError('ServiceUnavailable', `The service is restarting; VM ${name} continues`, {
    kind: 'vms',
    name,
    retryAfterSeconds: 2,
    hint: `Try again, or check the VM: svc3 vm show ${name} -n ${namespace}`,
  })
