// Applies an agent's report to the record of a VM. Applying it twice changes nothing.
import { isDeepStrictEqual } from 'node:util'
import type { VmReport } from '../../api/nodes/agent.ts'
import { type GuestReach, isUnreachable } from '../../api/vms/guest-reach.ts'
import { timestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
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
  const { power, problem, isHostUnfit, warning, diskGb, operation, portsTaken } = report
  if (power === 'removed') return record
  const generation = Math.max(record.observed.generation, Math.min(report.generation, record.desired.generation))
  const isDone = generation >= record.desired.generation
  const knownDiskGb = diskGb ?? record.observed.diskGb
  const observed: VmObserved = {
    generation,
    power,
    hasRun: record.observed.hasRun || power === 'running',
    ...defined({ problem, isHostUnfit, warning, diskGb: knownDiskGb }),
    ...(operation && !isDone && { operation }),
  }
  // A disk that could not grow must not grow with the next generation.
  const { diskGb: wantedGb, ...desired } = record.desired
  const couldNotGrow = isDone && problem !== undefined && (wantedGb ?? 0) > (knownDiskGb ?? 0)
  const adjusted = couldNotGrow ? { ...record, desired } : record
  const others = record.conditions.filter(({ type }) => type !== 'NodeReady')
  const next = {
    ...adjusted,
    observed,
    ...(record.times && { times: withTimes(record.times, observed, report, now.getTime()) }),
    conditions: withGuest(others, report, now),
  }
  if (!portsTaken || portsTaken.length === 0) return next
  const message = `Port ${portsTaken.join(', ')} is in use by another program on node ${record.place?.node ?? ''}`
  const rest = next.conditions.filter(({ type }) => type !== 'PortsFree')
  const known = record.conditions.find((each) => each.type === 'PortsFree' && each.message === message)
  const condition = { type: 'PortsFree', status: 'False', reason: 'PortTaken', message, at: timestamp(now) } as const
  return { ...next, conditions: [...rest, known ?? condition] }
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

type Conditions = VmRecord['conditions']
type Condition = Omit<Conditions[number], 'at'>

/** `at` is the time when the status of a condition last changed. */
function withCondition(conditions: Conditions, condition: Condition, now: Date): Conditions {
  const { type, status, reason, message } = condition
  const known = conditions.find((each) => each.type === type)
  if (known?.status === status && known.reason === reason && known.message === message) return conditions
  const at = known?.status === status ? known.at : timestamp(now)
  return [...conditions.filter((each) => each !== known), { ...condition, at }]
}

const booted: Condition = { type: 'Booted', status: 'True', reason: 'SshAnswers', message: 'SSH answers in the guest' }
const notBooted: Condition = {
  type: 'Booted',
  status: 'False',
  reason: 'NoSshAnswer',
  message: 'No SSH answer 5 min after the start: the guest did not boot, or runs no SSH server',
}

function reachable(reach: GuestReach): Condition {
  const type = 'GuestReachable'
  if (isUnreachable(reach)) return { type, status: 'False', ...reach }
  return { type, status: 'True', reason: 'Reachable', message: reach.message ?? booted.message }
}

const imageReady: Condition = {
  type: 'ImageReady',
  status: 'True',
  reason: 'Complete',
  message: 'All of the image is on the node',
}

/** For example `image 34 %, 1.2 GiB of 3.5 GiB, 80 MiB/s`. */
function arriving(image: NonNullable<VmReport['image']>): Condition {
  const { percent, bytes, totalBytes, bytesPerSecond, waiting } = image
  const rate = waiting === undefined ? `${sizeText(bytesPerSecond)}/s` : `waiting: ${waiting}`
  const message = `image ${percent} %, ${sizeText(bytes)} of ${sizeText(totalBytes)}, ${rate}`
  return { type: 'ImageReady', status: 'False', reason: waiting === undefined ? 'Arriving' : 'Waiting', message }
}

const ofGuest: readonly string[] = ['Booted', 'ImageReady', 'GuestReachable']
/** Conditions of the guest that end in this state; all of them in states that are not named. */
const ended: Readonly<Partial<Record<VmReport['power'], readonly string[]>>> = {
  running: [],
  suspended: ['GuestReachable'],
}

/** Conditions of the guest exist only while the VM runs. ImageReady is for VMs that start before all of their image arrives. */
function withGuest(before: Conditions, report: VmReport, now: Date): Conditions {
  const { image, reach } = report
  const dropped = ended[report.power] ?? ofGuest
  const conditions = before.filter(({ type }) => !dropped.includes(type))
  if (dropped === ofGuest) return conditions
  const booting = report.booted === undefined ? undefined : report.booted ? booted : notBooted
  const whole = booting ? withCondition(conditions, booting, now) : conditions
  const known = reach ? withCondition(whole, reachable(reach), now) : whole
  const hasArrived = !image && known.some(({ type }) => type === 'ImageReady')
  const arrival = image ? arriving(image) : hasArrived ? imageReady : undefined
  return arrival ? withCondition(known, arrival, now) : known
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
