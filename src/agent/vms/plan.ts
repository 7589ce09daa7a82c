// Plans the work on a VM from its desired and its observed state. Pure: no I/O, no clock, no driver.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { Observed } from '../../drivers/driver.ts'
import type { WorkKind, WorkStep } from './steps.ts'

export type Desired = DesiredVm['power']
export type Actual = Observed['state']

export interface VmSituation {
  readonly desired: Desired
  readonly actual: Actual
  /** This generation was carried out, or has failed. Its state is only maintained. */
  readonly isFulfilled: boolean
  /** The VM has run. Until then, a failed deployment is undone and an interrupted one is continued. */
  readonly isDeployed: boolean
  /** The disk is older than the last requested revert. */
  readonly needsRevert: boolean
  readonly needsGrowth: boolean
  /** A requested capture has not been frozen. */
  readonly needsCapture: boolean
  /** The VM shall take over a slot of a pool, and has not yet. */
  readonly needsClaim: boolean
  /** The slot could not be taken over. It is removed, and the VM is deployed without it. */
  readonly isUnclaimable: boolean
  /** There are credentials for growing the file system in the guest. */
  readonly hasCredentials: boolean
  /** The hypervisor runs commands in the guest without credentials. */
  readonly hasInside: boolean
}

/** Nothing to do, because the state is reached (`done`) or cannot be reached. */
export interface NoWork {
  readonly steps: readonly []
  readonly as: 'done' | 'lost' | 'not-running'
}
export interface Work {
  readonly kind: WorkKind
  readonly steps: readonly [WorkStep, ...WorkStep[]]
}
export type VmPlan = NoWork | Work

const done: NoWork = { steps: [], as: 'done' }
/** The disk has vanished. A user must decide, because a new disk could be mistaken for the old one. */
const lost: NoWork = { steps: [], as: 'lost' }
/** Only a running VM can be suspended. The server checks that, but the VM may have ended since. */
const notRunning: NoWork = { steps: [], as: 'not-running' }
const work = (kind: WorkKind, ...steps: [WorkStep, ...WorkStep[]]): Work => ({ kind, steps })

const deploy = work('deploy', 'image', 'create', 'start')
const start = work('start', 'image', 'start')
const stop = work('stop', 'stop')
const resume = work('resume', 'resume')
const suspend = work('suspend', 'suspend')
const remove = work('delete', 'destroy')
const capture = work('capture', 'capture')
const claim = work('claim', 'claim')
const discard = work('claim', 'discard')

type Row = Readonly<Record<Actual, VmPlan>>

const forNewGeneration: Readonly<Record<Desired, Row>> = {
  running: { absent: lost, stopped: start, running: done, suspended: resume, failed: start, gone: start },
  // A VM that is down is stopped too, so that the driver cleans up after a failure.
  stopped: { absent: lost, stopped: done, running: stop, suspended: stop, failed: stop, gone: stop },
  suspended: {
    absent: lost,
    stopped: notRunning,
    running: suspend,
    suspended: done,
    failed: notRunning,
    gone: notRunning,
  },
  deleted: { absent: remove, stopped: remove, running: remove, suspended: remove, failed: remove, gone: remove },
}

/** For a VM that is not deployed: it is created, and a missing disk is not lost. */
const forUndeployed: Readonly<Record<Desired, Row>> = {
  running: { ...forNewGeneration.running, absent: deploy, stopped: deploy, failed: deploy, gone: deploy },
  stopped: { ...forNewGeneration.stopped, absent: done },
  suspended: { ...forNewGeneration.suspended, absent: notRunning },
  deleted: forNewGeneration.deleted,
}

/**
 * For a generation that was carried out. A VM that shut itself down or failed stays so until a user starts it, which is
 * a new generation. A VM that ended with its host is started again, unless it was suspended and so lost its memory.
 */
const forFulfilled: Readonly<Record<Exclude<Desired, 'deleted'>, Row>> = {
  running: { absent: lost, stopped: done, running: done, suspended: done, failed: done, gone: start },
  stopped: { absent: lost, stopped: done, running: stop, suspended: stop, failed: done, gone: done },
  suspended: { absent: lost, stopped: done, running: suspend, suspended: done, failed: done, gone: done },
}

const isUp: Readonly<Record<Actual, boolean>> = {
  absent: false,
  stopped: false,
  running: true,
  suspended: true,
  // The VM may still have a process, such as one that is paused on an error.
  failed: true,
  gone: false,
}

const canBeClaimed: Readonly<Partial<Record<Actual, boolean>>> = { running: true, suspended: true }

/** The steps from a stopped VM to the desired state. */
const restore: Readonly<Record<Desired, readonly WorkStep[]>> = {
  running: ['start'],
  stopped: [],
  suspended: ['start', 'suspend'],
  deleted: [],
}

export function planFor(situation: VmSituation): VmPlan {
  const { desired, actual, isFulfilled, isDeployed, needsRevert, needsGrowth } = situation
  // A capture precedes even a deletion, so that both are done. If the VM does not run, the capture fails.
  if (situation.needsCapture && isDeployed) return capture
  if (desired === 'deleted') return forNewGeneration.deleted[actual]
  if (situation.needsClaim) return canBeClaimed[actual] && !situation.isUnclaimable ? claim : discard
  if (!isDeployed) return isFulfilled ? done : forUndeployed[desired][actual]
  if (isFulfilled) return forFulfilled[desired][actual]
  if (needsRevert) return revert(situation)
  // After a revert, the disk has the desired size and its file system does not: only the latter must grow.
  const isForGuest = situation.hasCredentials && desired === 'running'
  if ((needsGrowth || isForGuest) && actual !== 'absent') return resize(situation)
  return forNewGeneration[desired][actual]
}

/** Replaces the disk, or creates a lost one. The VM is killed, because nothing on the old disk is kept. */
const revert = ({ desired, actual }: VmSituation): Work =>
  actual === 'absent'
    ? work('revert', 'image', 'create', ...restore[desired])
    : work('revert', 'image', ...(isUp[actual] ? (['kill'] as const) : []), 'revert', ...restore[desired])

const resize = ({ desired, actual, hasCredentials, hasInside }: VmSituation): Work => {
  const down: readonly WorkStep[] = isUp[actual] ? ['stop'] : []
  const inside: readonly WorkStep[] = (hasCredentials || hasInside) && desired === 'running' ? ['partition'] : []
  return work('resize', 'image', ...down, 'grow', ...restore[desired], ...inside)
}
