// How a VM came to run: each step with how long it took, and what it waits for now.
import type { Vm } from '../../../src/api/vms/vms.ts'
import { Time, useNow } from '../../ui/time.tsx'
import { took } from '../../ui/time-words.ts'
import { timelineOf } from './model.ts'
import { vmTexts as words } from './texts.ts'

export function Timeline({ vm }: { readonly vm: Vm }) {
  const steps = timelineOf(vm, useNow())
  return (
    <ol className="timeline" aria-label={words.timeline}>
      {steps.map(({ step, at, tookMs, isOpen }) => (
        <li key={step} data-open={isOpen || undefined}>
          <b>{isOpen ? words.timelineOpen[step] : words.timelineSteps[step]}</b>
          <span className="tabular">{tookMs === undefined ? '' : took(tookMs / 1_000)}</span>
          <span className="muted small">{at !== undefined && <Time at={at} />}</span>
        </li>
      ))}
    </ol>
  )
}
