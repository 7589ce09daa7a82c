// Plans the next steps of a runner pool from its settings, demand and runners. A runner is judged by its VM and by what
// the source knows about it, not by the result of its job.
import { isRunnerFailure, type RunnerEndReason } from '../../api/vms/runner-pools.ts'
import type { JobDemand } from './jobs.ts'

export interface Ending {
  readonly reason: RunnerEndReason
  readonly message: string
}

/** The runner's state in the source's list; undefined before the first list. */
type Seen = 'online' | 'busy' | 'offline' | 'unknown' | 'absent' | undefined

export interface Runner {
  readonly name: string
  readonly createdMs: number
  /** Whether this process is registering it or creating its VM. */
  readonly isInHand: boolean
  readonly isRegistered: boolean
  /**
   * Whether it is registered and started by SSH once its VM runs. Otherwise it is registered first and starts at boot.
   */
  readonly isBySsh: boolean
  /** Only for runners that are started by SSH. */
  readonly isStarted: boolean
  /** `none`: not created yet. `gone`: deleted. */
  readonly vm: 'none' | 'pending' | 'running' | 'down' | 'failed' | 'gone'
  readonly problem?: string | undefined
  readonly runningMs?: number | undefined
  readonly connectedMs?: number | undefined
  readonly hasJob: boolean
  /** Whether the source reported the end of its job. */
  readonly isJobDone: boolean
  /** Since when the source does not list it. */
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
  /** Consecutive failures, and the time of the last one. */
  readonly failing: { readonly count: number; readonly lastMs: number }
  readonly runners: readonly Runner[]
}

export interface RunnerPlan {
  /** Facts about runners, which are written before any step. */
  readonly notes: readonly { readonly name: string; readonly note: Note }[]
  readonly ends: readonly { readonly name: string; readonly end: Ending }[]
  readonly create: number
  /** Runners whose VM runs, to be registered and started by SSH. */
  readonly starts: readonly string[]
  /** Until when the pool creates no runners because of failures, if some are lacking. */
  readonly restUntilMs?: number
  /** When to plan again. */
  readonly againMs: number
}

type Note = 'running' | 'connected' | 'missed' | 'found'

/** A missing runner must be missing for this long, because a list may be older than its registration. */
const missedMs = 30_000
/** After this time an unfinished registration that no process is working on is lost. */
const lostMs = 10_000
const restAfter = 5
const firstRestMs = 30_000
const longestRestMs = 600_000

/** How long a pool rests after consecutive failures. */
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
  // Runners that are ending still have their VM.
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
    // A runner is removed from the list after its job, and a short job may end before any news of it arrives.
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
  // If it is unknown which runners are online, an idle one cannot be told from one that never connected.
  const isKnownAway = seen === 'offline' || seen === 'absent'
  if (runningMs !== undefined && !wasUsed && isKnownAway && nowMs - runningMs >= connectMs)
    return {
      reason: 'NotConnected',
      message: `The runner did not connect within ${Math.round(connectMs / 1_000)} s after its VM started`,
    }
  return undefined
}

/** Surplus runners without a job, starting with those that are not up yet. */
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
