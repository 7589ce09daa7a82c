// What a runner pool does next. Pure: from its settings, the demand of its source, its runners with their VMs, and the time.
// A runner is judged by its VM and by what the source knows of it, never by how its job ended.
import type { RunnerEndReason } from '../../api/vms/runner-pools.ts'
import type { JobDemand } from './jobs.ts'

/** How runners fail, which is a reason to wait before the next once it happens again and again. */
const failures: readonly RunnerEndReason[] = [
  'NotConnected',
  'GuestEnded',
  'DeployFailed',
  'StartFailed',
  'RunnerGone',
  'RegistrationFailed',
]
export const isRunnerFailure = (reason: RunnerEndReason): boolean => failures.includes(reason)

export interface Ending {
  readonly reason: RunnerEndReason
  readonly message: string
}

/** As the source lists it; `undefined`: nobody has looked yet. */
type Seen = 'online' | 'busy' | 'offline' | 'unknown' | 'absent' | undefined

export interface Runner {
  readonly name: string
  readonly createdMs: number
  /** It is being registered, or its VM created, right now by this process. */
  readonly isInHand: boolean
  readonly isRegistered: boolean
  /** It is registered and started by SSH once its VM runs; otherwise it is registered before, and starts by itself. */
  readonly isBySsh: boolean
  /** By SSH. */
  readonly isStarted: boolean
  /** `none`: not created yet. `gone`: it was, and is not any more. */
  readonly vm: 'none' | 'pending' | 'running' | 'down' | 'failed' | 'gone'
  readonly problem?: string | undefined
  readonly runningMs?: number | undefined
  readonly connectedMs?: number | undefined
  /** A job has started on it. */
  readonly hasJob: boolean
  /** The source said that this job is over. */
  readonly isJobDone: boolean
  /** Since when the source does not know it any more. */
  readonly missedMs?: number | undefined
  readonly seen: Seen
  readonly isEnding: boolean
}

export interface RunnerPoolState {
  readonly nowMs: number
  readonly minIdle: number
  readonly max: number
  readonly connectMs: number
  readonly idleMs: number
  readonly isPaused: boolean
  readonly isDrained: boolean
  readonly isDeleting: boolean
  readonly isForced: boolean
  readonly demand: JobDemand
  /** Jobs that ended here and that `demand` still counts. */
  readonly endedSince: number
  /** Failures one after the other, and when the last was. */
  readonly failing: { readonly count: number; readonly lastMs: number }
  readonly runners: readonly Runner[]
}

export interface RunnerPlan {
  /** What was learnt of runners: written before anything is done. */
  readonly notes: readonly { readonly name: string; readonly note: Note }[]
  readonly ends: readonly { readonly name: string; readonly end: Ending }[]
  readonly create: number
  /** Those whose VM runs, to be registered and started by SSH. */
  readonly starts: readonly string[]
  /** Why there are fewer than wanted. */
  readonly restUntilMs?: number
  /** When to look again. */
  readonly againMs: number
}

type Note = 'running' | 'connected' | 'missed' | 'found'

/** A list may be from before a runner registered: one look is no proof. */
const missedMs = 30_000
/** A registration that no process has in hand. */
const lostMs = 10_000
const restAfter = 5
const firstRestMs = 30_000
const longestRestMs = 600_000

/** How long a pool rests after so many failures in a row; 0: not at all. */
export const runnerRestMs = (failures: number): number =>
  failures < restAfter ? 0 : Math.min(longestRestMs, firstRestMs * 2 ** (failures - restAfter))

const wantedOf = (state: Pick<RunnerPoolState, 'minIdle' | 'max' | 'demand' | 'endedSince'>): number =>
  Math.min(state.max, state.minIdle + Math.max(0, state.demand.assigned - state.endedSince))

export function planRunners(state: RunnerPoolState): RunnerPlan {
  const { nowMs, runners, max, failing } = state
  const notes: { name: string; note: Note }[] = []
  const ends: { name: string; end: Ending }[] = []
  const live: Runner[] = []
  let againMs = Infinity
  const later = (atMs: number): void => {
    if (atMs > nowMs) againMs = Math.min(againMs, atMs)
  }
  for (const runner of runners) {
    if (runner.isEnding) continue
    for (const note of notesOf(runner)) notes.push({ name: runner.name, note })
    const end = endOf(runner, state)
    if (end) ends.push({ name: runner.name, end })
    else {
      if (!runner.isJobDone) live.push(runner)
      if (runner.runningMs !== undefined && runner.connectedMs === undefined) later(runner.runningMs + state.connectMs)
      if (runner.missedMs !== undefined) later(runner.missedMs + missedMs)
      if (!runner.isRegistered) later(runner.createdMs + lostMs)
    }
  }
  const isStopped = state.isPaused || state.isDeleting
  const wanted = isStopped ? 0 : wantedOf(state)
  const idle = state.isPaused && !state.isDrained && !state.isDeleting ? [] : surplusOf(live, wanted, state, later)
  for (const runner of idle) ends.push({ name: runner.name, end: surplusEnd(state) })
  const more = ends.filter(({ end }) => isRunnerFailure(end.reason)).length
  const restUntilMs = (more > 0 ? nowMs : failing.lastMs) + runnerRestMs(failing.count + more)
  const isResting = restUntilMs > nowMs
  if (isResting) later(restUntilMs)
  // What is on its way out still has its VM.
  const held = runners.filter(({ vm }) => vm !== 'gone').length
  const lacking = Math.max(0, Math.min(wanted - (live.length - idle.length), max - held))
  const isReady = ({ isBySsh, isRegistered, isInHand, vm }: Runner): boolean =>
    isBySsh && !isRegistered && !isInHand && vm === 'running'
  return {
    notes,
    ends,
    starts: isStopped ? [] : live.filter((runner) => isReady(runner) && !idle.includes(runner)).map(({ name }) => name),
    create: isResting ? 0 : lacking,
    ...(isResting && lacking > 0 && { restUntilMs }),
    againMs,
  }
}

function notesOf({ vm, runningMs, connectedMs, seen, missedMs: missed, hasJob }: Runner): Note[] {
  const isUp = seen === 'online' || seen === 'busy' || hasJob
  return [
    ...(vm === 'running' && runningMs === undefined ? (['running'] as const) : []),
    ...(isUp && connectedMs === undefined ? (['connected'] as const) : []),
    ...(seen === 'absent' && missed === undefined ? (['missed'] as const) : []),
    ...(seen !== 'absent' && seen !== undefined && missed !== undefined ? (['found'] as const) : []),
  ]
}

function endOf(runner: Runner, state: RunnerPoolState): Ending | undefined {
  const { nowMs, connectMs } = state
  const { vm, isInHand, isRegistered, hasJob, connectedMs, runningMs, createdMs, problem, seen } = runner
  if (isInHand) return undefined
  const wasUsed = hasJob || connectedMs !== undefined
  if (state.isForced) return { reason: 'Deleted', message: 'The runner pool is being deleted' }
  if (vm === 'gone')
    return hasJob
      ? { reason: 'Finished', message: 'Its VM was deleted' }
      : { reason: 'VmDeleted', message: 'Its VM was deleted' }
  if (vm === 'failed' && !wasUsed) return { reason: 'DeployFailed', message: problem ?? 'Its VM could not be started' }
  if (vm === 'down' || vm === 'failed')
    // A runner that had its job is not registered any more; a short one may be over before anybody heard that it began.
    return wasUsed || seen !== 'offline'
      ? { reason: 'Finished', message: 'Its guest powered off' }
      : { reason: 'GuestEnded', message: 'The guest powered off before its runner connected' }
  const isHalf = runner.isBySsh ? isRegistered && !runner.isStarted && !wasUsed : !isRegistered
  if (isHalf || vm === 'none')
    return nowMs - createdMs > lostMs
      ? { reason: 'RegistrationLost', message: 'The server stopped while the runner was being set up' }
      : undefined
  if (seen === 'absent' && runner.missedMs !== undefined && nowMs - runner.missedMs >= missedMs)
    return hasJob || runner.isJobDone
      ? { reason: 'Finished', message: 'Its runner has left' }
      : { reason: 'RunnerGone', message: 'The runner is no longer registered' }
  // Without a word on who is online, a runner that waits looks like one that never came.
  const isKnownAway = seen === 'offline' || seen === 'absent'
  if (runningMs !== undefined && !wasUsed && isKnownAway && nowMs - runningMs >= connectMs)
    return {
      reason: 'NotConnected',
      message: `The runner did not connect within ${Math.round(connectMs / 1_000)} s after its VM started`,
    }
  return undefined
}

/** Those above what is wanted, which have no job: first the ones that are not up yet. */
function surplusOf(
  live: readonly Runner[],
  wanted: number,
  { nowMs, idleMs, isDrained, isDeleting }: RunnerPoolState,
  later: (atMs: number) => void,
): readonly Runner[] {
  const free = live.filter(({ hasJob, seen, isInHand }) => !hasJob && seen !== 'busy' && !isInHand)
  const surplus = Math.max(0, live.length - wanted)
  if (surplus === 0) return []
  const isHasty = isDrained || isDeleting
  const isDue = ({ vm, connectedMs, runningMs }: Runner): boolean => {
    const sinceMs = connectedMs ?? runningMs
    if (isHasty || vm === 'pending') return true
    if (sinceMs === undefined) return false
    later(sinceMs + idleMs)
    return nowMs - sinceMs >= idleMs
  }
  const order = ({ vm, connectedMs }: Runner): number => (vm === 'pending' ? 0 : connectedMs === undefined ? 1 : 2)
  return free
    .filter(isDue)
    .toSorted((a, b) => order(a) - order(b) || a.createdMs - b.createdMs)
    .slice(0, surplus)
}

const surplusEnd = ({ isDrained, isDeleting }: RunnerPoolState): Ending =>
  isDeleting
    ? { reason: 'Deleted', message: 'The runner pool is being deleted' }
    : isDrained
      ? { reason: 'Drained', message: 'The runner pool is drained' }
      : { reason: 'Idle', message: 'More runners than jobs' }
