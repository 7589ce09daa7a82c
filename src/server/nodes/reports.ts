// Applies an agent's report to the record of a VM. Applying it twice changes nothing.
import { isDeepStrictEqual } from 'node:util'
import type { VmReport } from '../../api/nodes/agent.ts'
import { timestamp } from '../../platform/clock.ts'
import { sizeText } from '../../rules/sizes.ts'
import type { VmObserved, VmRecord } from '../../store/records/fleet-records.ts'
import { isDeleted, withDesired } from '../../store/records/vms.ts'

/** Returns undefined if the report has nothing new. */
export function mergeReport(record: VmRecord, report: VmReport, now: Date): VmRecord | undefined {
  const merged = withObserved(record, report, now)
  if (reported.every((part) => isDeepStrictEqual(merged[part], record[part]))) return undefined
  return settleDeployment(merged)
}

/** The parts of the record that a report may change. */
const reported = ['desired', 'observed', 'times', 'conditions'] as const

function withObserved(record: VmRecord, report: VmReport, now: Date): VmRecord {
  const { power, problem, warning, diskGb, operation, portsTaken } = report
  if (power === 'removed') return record
  const generation = Math.max(record.observed.generation, Math.min(report.generation, record.desired.generation))
  const isDone = generation >= record.desired.generation
  const knownDiskGb = diskGb ?? record.observed.diskGb
  const observed: VmObserved = {
    generation,
    power,
    hasRun: record.observed.hasRun || power === 'running',
    ...(problem !== undefined && { problem }),
    ...(warning !== undefined && { warning }),
    ...(knownDiskGb !== undefined && { diskGb: knownDiskGb }),
    ...(operation && !isDone && { operation }),
  }
  // A disk that could not grow must not grow with the next generation.
  const { diskGb: wantedGb, ...desired } = record.desired
  const couldNotGrow = isDone && problem !== undefined && (wantedGb ?? 0) > (knownDiskGb ?? 0)
  const kept = couldNotGrow ? { ...record, desired } : record
  const stay = record.conditions.filter(({ type }) => type !== 'NodeReady')
  const next = {
    ...kept,
    observed,
    ...(record.times && { times: withTimes(record.times, observed, report, now.getTime()) }),
    conditions: withImage(withBooted(stay, report, now), report, now),
  }
  if (!portsTaken || portsTaken.length === 0) return next
  const message = `Port ${portsTaken.join(', ')} is in use by another program on node ${record.place?.node ?? ''}`
  const others = next.conditions.filter(({ type }) => type !== 'PortsFree')
  const known = record.conditions.find((each) => each.type === 'PortsFree' && each.message === message)
  const condition = { type: 'PortsFree', status: 'False', reason: 'PortTaken', message, at: timestamp(now) } as const
  return { ...next, conditions: [...others, known ?? condition] }
}

function withTimes(
  times: NonNullable<VmRecord['times']>,
  { hasRun }: VmObserved,
  { booted }: VmReport,
  nowMs: number,
): NonNullable<VmRecord['times']> {
  const isStarted = hasRun && times.startedMs === undefined
  const isBooted = booted === true && times.bootedMs === undefined
  return { ...times, ...(isStarted && { startedMs: nowMs }), ...(isBooted && { bootedMs: nowMs }) }
}

/** Sets the condition Booted while the VM runs. It is unknown after a start. */
function withBooted(
  conditions: VmRecord['conditions'],
  { power, booted }: VmReport,
  now: Date,
): VmRecord['conditions'] {
  const known = conditions.find(({ type }) => type === 'Booted')
  const others = conditions.filter(({ type }) => type !== 'Booted')
  if (power !== 'running' && power !== 'suspended') return others
  if (booted === undefined || known?.status === (booted ? 'True' : 'False')) return conditions
  const found = booted
    ? ({ status: 'True', reason: 'SshAnswers', message: 'SSH answers in the guest' } as const)
    : ({
        status: 'False',
        reason: 'NoSshAnswer',
        message: 'No SSH answer 5 min after the start: the guest did not boot, or runs no SSH server',
      } as const)
  return [...others, { type: 'Booted', ...found, at: timestamp(now) }]
}

/** For example `image 34 %, 1.2 GiB of 3.5 GiB, 80 MiB/s`. */
function arrivalText({ percent, bytes, totalBytes, bytesPerSecond, waiting }: NonNullable<VmReport['image']>): string {
  const rate = waiting === undefined ? `${sizeText(bytesPerSecond)}/s` : `waiting: ${waiting}`
  return `image ${percent} %, ${sizeText(bytes)} of ${sizeText(totalBytes)}, ${rate}`
}

/** Sets the condition ImageReady for VMs that started before all of their image had arrived. */
function withImage(conditions: VmRecord['conditions'], { power, image }: VmReport, now: Date): VmRecord['conditions'] {
  const known = conditions.find(({ type }) => type === 'ImageReady')
  const others = conditions.filter(({ type }) => type !== 'ImageReady')
  if (power !== 'running' && power !== 'suspended') return others
  if (!known && !image) return conditions
  const found = image
    ? ({
        status: 'False',
        reason: image.waiting === undefined ? 'Arriving' : 'Waiting',
        message: arrivalText(image),
      } as const)
    : ({ status: 'True', reason: 'Complete', message: 'All of the image is on the node' } as const)
  if (known?.status === found.status && known.message === found.message) return conditions
  return [...others, { type: 'ImageReady', ...found, at: known?.status === found.status ? known.at : timestamp(now) }]
}

/** A deployment that failed while its client waits is deleted by the same write. */
function settleDeployment(record: VmRecord): VmRecord {
  const { observed, desired, awaitedUntil } = record
  const isFailed = observed.power === 'failed' && !observed.hasRun && observed.generation >= desired.generation
  if (!isFailed || awaitedUntil === undefined || isDeleted(record)) return record
  return {
    ...withDesired(record, { power: 'deleted', action: 'delete' }),
    failure: observed.problem ?? 'Could not be started',
  }
}
