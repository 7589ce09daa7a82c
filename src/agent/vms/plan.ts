// What to do about a VM: a table of desired × observed. Pure: no I/O, no clock, no driver.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { Observed } from '../../drivers/driver.ts'
import type { WorkKind, WorkStep } from './steps.ts'

export type Desired = DesiredVm['power']
export type Actual = Observed['state']

export interface VmSituation {
  readonly desired: Desired
  readonly actual: Actual
  /** This generation was carried out before, or failed for good: from now on it is only kept. */
  readonly isFulfilled: boolean
  /** It was up once. A deployment that failed was taken back, and one that was cut off is gone on with. */
  readonly isDeployed: boolean
  /** The disk is older than the last revert that was asked for. */
  readonly needsRevert: boolean
  /** The disk is smaller than desired. */
  readonly needsGrowth: boolean
  /** Something of it is to be frozen for an image. */
  readonly needsCapture: boolean
  /** It takes over a slot, and has not yet. */
  readonly needsClaim: boolean
  /** The slot could not become this VM: it makes room for one that is deployed. */
  readonly isUnclaimable: boolean
  /** Partition and file system are to be grown in the guest, too. */
  readonly hasCredentials: boolean
}

/** Nothing to do: `as` says why, where that is not simply that all is well. */
export interface Rest {
  readonly steps: readonly []
  readonly as: 'done' | 'lost' | 'not-running'
}
export interface Work {
  readonly kind: WorkKind
  readonly steps: readonly [WorkStep, ...WorkStep[]]
}
export type VmPlan = Rest | Work

const done: Rest = { steps: [], as: 'done' }
/** Its disk was here and is not any more: a new one would pass for the old one, so somebody has to decide. */
const lost: Rest = { steps: [], as: 'lost' }
/** Only what runs can be frozen. The server refuses it; but the VM may have ended since. */
const notRunning: Rest = { steps: [], as: 'not-running' }
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

/** A new generation. */
const fresh: Readonly<Record<Desired, Row>> = {
  running: { absent: lost, stopped: start, running: done, suspended: resume, failed: start, gone: start },
  // A stop of one that is down is a step all the same: drivers tidy up after what failed.
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

/** A new generation of a VM that is not deployed: the same, but it is made, and what was never there is not lost. */
const first: Readonly<Record<Desired, Row>> = {
  running: { ...fresh.running, absent: deploy, stopped: deploy, failed: deploy, gone: deploy },
  stopped: { ...fresh.stopped, absent: done },
  suspended: { ...fresh.suspended, absent: notRunning },
  deleted: fresh.deleted,
}

/**
 * A generation that was carried out. One that powered itself off stays off, one that failed stays failed, until somebody
 * starts it, which is a new one. What ended with the host is started again; frozen memory is lost with the host.
 */
const kept: Readonly<Record<Exclude<Desired, 'deleted'>, Row>> = {
  running: { absent: lost, stopped: done, running: done, suspended: done, failed: done, gone: start },
  stopped: { absent: lost, stopped: done, running: stop, suspended: stop, failed: done, gone: done },
  suspended: { absent: lost, stopped: done, running: suspend, suspended: done, failed: done, gone: done },
}

const isUp: Readonly<Record<Actual, boolean>> = {
  absent: false,
  stopped: false,
  running: true,
  suspended: true,
  // It may have a process yet: paused on an error, or out of control.
  failed: true,
  gone: false,
}

const canBeClaimed: Readonly<Partial<Record<Actual, boolean>>> = { running: true, suspended: true }

/** How it comes back to the desired state once its disk was worked on with the VM down. */
const back: Readonly<Record<Desired, readonly WorkStep[]>> = {
  running: ['start'],
  stopped: [],
  suspended: ['start', 'suspend'],
  deleted: [],
}

export function planFor(situation: VmSituation): VmPlan {
  const { desired, actual, isFulfilled, isDeployed, needsRevert, needsGrowth } = situation
  // Also before its end: after a save and a deletion at once, both are done. What runs no more is a failure of the capture.
  if (situation.needsCapture && isDeployed) return capture
  if (desired === 'deleted') return fresh.deleted[actual]
  if (situation.needsClaim) return canBeClaimed[actual] && !situation.isUnclaimable ? claim : discard
  if (!isDeployed) return isFulfilled ? done : first[desired][actual]
  if (isFulfilled) return kept[desired][actual]
  if (needsRevert) return revert(situation)
  // Credentials without growth: after a revert the file system is smaller than the disk, which kept its size.
  const isForGuest = situation.hasCredentials && desired === 'running'
  if ((needsGrowth || isForGuest) && actual !== 'absent') return resize(situation)
  return fresh[desired][actual]
}

/** A new disk from the image: what runs on the old one has nothing to save. */
const revert = ({ desired, actual }: VmSituation): Work =>
  // A revert needs no old disk: it also brings back a VM whose disk was lost.
  actual === 'absent'
    ? work('revert', 'image', 'create', ...back[desired])
    : work('revert', 'image', ...(isUp[actual] ? (['kill'] as const) : []), 'revert', ...back[desired])

const resize = ({ desired, actual, hasCredentials }: VmSituation): Work => {
  const down: readonly WorkStep[] = isUp[actual] ? ['stop'] : []
  const inside: readonly WorkStep[] = hasCredentials && desired === 'running' ? ['partition'] : []
  return work('resize', 'image', ...down, 'grow', ...back[desired], ...inside)
}
