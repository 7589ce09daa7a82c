// The steps of a deployment with the duration of each.
import type { Vm } from '../../../src/api/vms/vms.ts'
import { Time, useNow } from '../../ui/time.tsx'
import { took } from '../../ui/time-words.ts'
import { timelineOf } from './model.ts'

const finishedSteps = {
  requested: 'Requested',
  placed: 'Placed on a node',
  claimed: 'Took a warm VM',
  started: 'Started',
  booted: 'Booted',
}

const waitingSteps = {
  requested: 'Requested',
  placed: 'Waiting for a node',
  claimed: 'Waiting for a warm VM',
  started: 'Starting',
  booted: 'Booting: SSH not responding yet',
}

export function Timeline({ vm }: { readonly vm: Vm }) {
  const steps = timelineOf(vm, useNow())
  return (
    <ol className="timeline" aria-label="Timeline">
      {steps.map(({ step, at, tookMs, isOpen }) => (
        <li key={step} data-open={isOpen || undefined}>
          <b>{isOpen ? waitingSteps[step] : finishedSteps[step]}</b>
          <span className="tabular">{tookMs === undefined ? '' : took(tookMs / 1_000)}</span>
          <span className="muted small">{at !== undefined && <Time at={at} />}</span>
        </li>
      ))}
    </ol>
  )
}
