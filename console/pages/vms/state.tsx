// State labels of VMs and push jobs, and the verdicts of nodes.
import type { PushJob } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { State, type Tone } from '../../ui/state.tsx'
import { arrivalText, hasOtherStatus, operationName, powerWords } from './model.ts'

const vmTones = {
  pending: 'busy',
  starting: 'busy',
  running: 'good',
  stopped: 'idle',
  suspended: 'warn',
  failed: 'bad',
  unknown: 'warn',
} as const satisfies Record<Vm['powerState'], Tone>

const pushTones = {
  Pending: 'busy',
  Running: 'busy',
  Succeeded: 'good',
  Failed: 'bad',
  Cancelled: 'idle',
} as const satisfies Record<PushJob['status'], Tone>

export function VmState({ vm }: { readonly vm: Vm }) {
  const { operation } = vm
  const arrival = arrivalText(vm)
  if (operation && operation.kind !== 'deploy') {
    const percent = operation.percent === undefined ? '' : ` ${operation.percent}%`
    return <State tone="busy" word={`${operationName(operation.kind)}${percent}`} />
  }
  return (
    <span className="line">
      <State tone={vmTones[vm.powerState]} word={powerWords[vm.powerState]} />
      {hasOtherStatus(vm) && (
        <span
          className="status muted small nowrap"
          title="Stopped and suspended Intel-based VMs keep the status Running."
        >
          {`Status ${vm.status}`}
        </span>
      )}
      {arrival !== undefined && <span className="muted small">{arrival}</span>}
    </span>
  )
}

export const PushState = ({ job }: { readonly job: PushJob }) => (
  <State tone={pushTones[job.status]} word={job.status} />
)

/** Which nodes can run a VM, and why the others cannot. */
export const Verdicts = ({ nodes }: { readonly nodes: NonNullable<Vm['nodes']> }) => (
  <details className="more small">
    <summary>All nodes</summary>
    <ul>
      {nodes.map(({ name, fits, reason }) => (
        <li key={name}>{`${fits ? '✓' : '–'} ${name}: ${reason}`}</li>
      ))}
    </ul>
  </details>
)
