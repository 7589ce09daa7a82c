// Records events that no caller caused: VMs placed, started, crashed or expired; images pulled and saved; nodes lost
// and back; certificates renewed. The leader compares each record with its previous value, so that a change makes at
// most one event and heartbeats make none. A crash between a change and its event loses the event.
import type { Loop } from '../platform/loop.ts'
import { defaultNamespace } from '../rules/names.ts'
import type { CertificateRecord } from '../store/records/collections.ts'
import { type EventRecord, newEvent } from '../store/records/events.ts'
import type { ImageRecord, NodeRecord, VmRecord } from '../store/records/fleet-records.ts'
import { isFailedDeployment } from '../store/records/node-vms.ts'
import { isFinished, type PushJobRecord } from '../store/records/push-jobs.ts'
import type { RunnerJobRecord, RunnerPoolRecord } from '../store/records/runner-records.ts'
import { lateDeployment, ttlEnded } from '../store/records/vms.ts'
import type { View } from '../store/view.ts'
import type { Controller } from './controller.ts'

interface EventDraft {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly uid?: string
  readonly reason: string
  readonly message: string
  readonly isBad?: true
  readonly audience?: EventRecord['audience']
}

type Compare<T> = (before: T, after: T) => EventDraft | readonly EventDraft[] | undefined

export function recordEvents({ collections, clock, log }: Controller): Pick<Loop, 'nudge' | 'stop'> {
  const { events, vms, nodes, images, isos, pushJobs, certificates, runnerPools, runnerJobs } = collections
  const writing = new Set<Promise<void>>()

  function write({ namespace, kind, name, uid, reason, message, isBad, audience = 'dev' }: EventDraft): void {
    const event: EventRecord = newEvent(clock.now(), {
      type: isBad ? 'Warning' : 'Normal',
      reason,
      message: message.slice(0, 1_000),
      involved: { kind, name, ...(uid !== undefined && { uid }) },
      actor: 'system',
      requestId: '',
      outcome: isBad ? 'Failed' : 'Succeeded',
      audience,
    })
    const failed = (error: unknown): void =>
      log.error('failed to record an event', { reason, kind, name, namespace }, error)
    const written = events.create(namespace, event.name, event).then(() => undefined, failed)
    writing.add(written)
    void written.then(() => writing.delete(written))
  }

  const follow = <T>(view: Pick<View<T>, 'subscribe'>, compare: Compare<T>): (() => void) =>
    view.subscribe((changes) => {
      for (const change of changes) {
        if (change.type !== 'put' || !change.previous) continue
        const found = compare(change.previous.value, change.entry.value)
        if (Array.isArray(found)) for (const draft of found) write(draft)
        else if (found) write(found as EventDraft)
      }
    })

  const unsubscribes = [
    follow(vms.view, vmEvent),
    follow(nodes.view, nodeEvent),
    follow(images.view, (before, after) => imageEvent('image', before, after)),
    follow(isos.view, (before, after) => imageEvent('iso', before, after)),
    follow(pushJobs.view, pushEvent),
    follow(certificates.view, certificateEvent),
    follow(runnerPools.view, runnerPoolEvent),
    // New records count, too, because a job may first be reported when it has started.
    runnerJobs.view.subscribe((changes) => {
      for (const change of changes)
        if (change.type === 'put')
          for (const draft of runnerJobEvents(change.previous?.value, change.entry.value)) write(draft)
    }),
  ]
  return {
    nudge: () => undefined,
    stop: async () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
      await Promise.all(writing)
    },
  }
}

const vmEvent: Compare<VmRecord> = (before, after) => {
  const { namespace, name, uid } = after
  const found = vmChange(before, after)
  return found && { namespace, kind: 'vms', name, uid, ...found }
}

type EventText = Pick<EventDraft, 'reason' | 'message' | 'isBad'>

function vmChange(before: VmRecord, after: VmRecord): EventText | undefined {
  const { name, failure, place, observed, desired } = after
  // The record is of another VM with the same name.
  if (before.uid !== after.uid) return undefined
  const failed = (why: string): EventText => ({
    reason: 'DeployFailed',
    message: `VM ${name} ${failureText(why)}`,
    isBad: true,
  })
  if (failure !== undefined && before.failure === undefined)
    return failure === ttlEnded
      ? { reason: 'VmExpired', message: `VM ${name} expired and is being deleted` }
      : failed(failure)
  if (isFailedDeployment(after) && !isFailedDeployment(before))
    return failed(observed.problem ?? 'Could not be started')
  if (place && !before.place)
    // The first generation is the deployment. A VM with a later one that never ran had to leave another node.
    return desired.generation > 1 && !observed.hasRun
      ? { reason: 'VmRescheduled', message: `VM ${name} rescheduled to ${place.node}` }
      : { reason: 'VmPlaced', message: `VM ${name} placed on ${place.node}` }
  const where = place ? ` on ${place.node}` : ''
  if (observed.hasRun && !before.observed.hasRun) return { reason: 'VmStarted', message: `VM ${name} started${where}` }
  return observed.hasRun && isKept(before, after) ? powerChange(before, after, where) : undefined
}

/** Returns what happened, to follow the name of the VM. Agents report sentences such as "Could not …". */
function failureText(why: string): string {
  if (why === lateDeployment) return 'failed to deploy in time'
  return /^Could not /.test(why) ? `c${why.slice(1)}` : `failed to deploy: ${why}`
}

/** Whether no change of the power state was requested, so that an observed one came from the guest or its process. */
const isKept = ({ observed: was, desired: had }: VmRecord, { observed: is, desired: has }: VmRecord): boolean =>
  has.power === 'running' &&
  had.generation === has.generation &&
  was.generation === is.generation &&
  is.generation === has.generation

function powerChange(
  { observed: was }: VmRecord,
  { name, observed: is }: VmRecord,
  where: string,
): EventText | undefined {
  const wasUp = was.power === 'running' || was.power === 'unknown'
  if (wasUp && is.power === 'failed')
    return {
      reason: 'VmCrashed',
      message: `VM ${name} crashed${where}: ${is.problem ?? 'no reason reported'}`,
      isBad: true,
    }
  if (wasUp && is.power === 'stopped') return { reason: 'VmPoweredOff', message: `VM ${name} powered off${where}` }
  const wasDown = was.power === 'stopped' || was.power === 'starting' || was.power === 'failed'
  return wasDown && is.power === 'running'
    ? { reason: 'VmRestarted', message: `VM ${name} restarted${where}` }
    : undefined
}

const nodeEvent: Compare<NodeRecord> = (before, after) => {
  if (before.isReady === after.isReady || before.uid !== after.uid) return undefined
  const { name, namespace } = after
  const about = { namespace, kind: 'nodes', name, uid: after.uid }
  if (!after.isReady) return { ...about, reason: 'NodeLost', message: `Node ${name} is not responding`, isBad: true }
  return { ...about, reason: 'NodeReady', message: `Node ${name} is ready` }
}

function imageEvent(kind: 'image' | 'iso', before: ImageRecord, after: ImageRecord): EventDraft[] {
  const { name, state = 'Ready', errorMessage, sourceNamespace } = after
  const { pull, capture } = before
  const again = after.version === before.version ? undefined : after.versions?.at(-1)?.restored
  if (again !== undefined) {
    const message = `Image ${name} is at version ${after.version}, which is version ${again} again`
    return [{ namespace: sourceNamespace ?? defaultNamespace, kind: 'images', name, reason: 'ImageRestored', message }]
  }
  if (before.state !== 'Updating' || state === 'Updating' || (!pull && !capture)) return []
  const what = `${kind === 'image' ? 'Image' : 'ISO'} ${name}`
  const namespace =
    capture?.vm.namespace ??
    (pull && 'namespace' in pull ? pull.namespace : undefined) ??
    sourceNamespace ??
    defaultNamespace
  const about = { namespace, kind: `${kind}s`, name }
  // A failed commit leaves the image unchanged.
  const isUnchanged = capture?.kind === 'commit' && before.version === after.version
  if (state === 'Failed' || (isUnchanged && errorMessage !== undefined)) {
    const [reason, verb] = pull ? ['PullFailed', 'pull'] : ['SaveFailed', 'save']
    const message = `Failed to ${verb} ${kind === 'image' ? 'image' : 'ISO'} ${name}: ${errorMessage ?? 'unknown'}`
    return [{ ...about, reason, message, isBad: true }]
  }
  if (isUnchanged) return []
  if (pull) return [{ ...about, reason: kind === 'image' ? 'ImagePulled' : 'IsoPulled', message: `${what} pulled` }]
  const saved = { ...about, reason: 'ImageSaved', message: `${what} saved from VM ${capture?.vm.name}` }
  const isElsewhere = sourceNamespace !== undefined && sourceNamespace !== namespace
  if (capture?.kind !== 'commit' || !isElsewhere) return [saved]
  // The namespace of the image gets an event, too, which does not name the VM or its namespace.
  const message = `${what} has a new version, ${after.version ?? 1}, committed from a VM in another namespace`
  return [saved, { ...about, namespace: sourceNamespace, reason: 'ImageSaved', message }]
}

const pushEvent: Compare<PushJobRecord> = (before, after) => {
  const { vm, namespace, status, image, errorMessage } = after
  // The request that canceled the push has recorded an event.
  if (isFinished(before) || !isFinished(after) || status === 'Cancelled') return undefined
  const about = { namespace, kind: 'vms', name: vm, uid: after.vmUid }
  return status === 'Failed'
    ? {
        ...about,
        reason: 'PushFailed',
        message: `Failed to push VM ${vm} to ${image}: ${errorMessage ?? 'unknown'}`,
        isBad: true,
      }
    : { ...about, reason: 'ImagePushed', message: `VM ${vm} pushed to ${image}` }
}

/** Returns an event if the condition of a pool changed, for example because it lost GitHub or its runners fail. */
const runnerPoolEvent: Compare<RunnerPoolRecord> = (before, after) => {
  const { name, namespace, status, uid } = after
  const { reason, message } = status.condition
  if (before.uid !== uid || before.status.condition.reason === reason) return undefined
  if (quietConditions.has(reason)) return undefined
  const about = { namespace, kind: 'runner-pools', name, uid }
  return reason === 'Ready'
    ? { ...about, reason: 'RunnerPoolReady', message: `Runner pool ${name} takes jobs` }
    : { ...about, reason: 'RunnerPoolFailed', message: `Runner pool ${name}: ${message}`, isBad: true }
}
/** Conditions that follow from a request, which has an event. */
const quietConditions = new Set(['Connecting', 'Paused', 'Drained', 'Deleting'])

function runnerJobEvents(before: RunnerJobRecord | undefined, after: RunnerJobRecord): EventDraft[] {
  const { pool, namespace, repository, runner, startedAt, finishedAt, result } = after
  const about = { namespace, kind: 'runner-pools', name: pool }
  const what = `Job ${after.name} of ${repository}`
  const where = runner === undefined ? '' : ` on VM ${runner}`
  return [
    ...(startedAt !== undefined && before?.startedAt === undefined
      ? [{ ...about, reason: 'JobStarted', message: `${what} started${where}` }]
      : []),
    ...(finishedAt !== undefined && before?.finishedAt === undefined
      ? [{ ...about, reason: 'JobCompleted', message: `${what} ended${where}: ${result ?? 'unknown'}` }]
      : []),
  ]
}

const certificateEvent: Compare<CertificateRecord> = (before, after) =>
  before.certificate === after.certificate || after.origin !== 'made'
    ? undefined
    : {
        namespace: defaultNamespace,
        kind: 'certificates',
        name: 'api',
        reason: 'CertificateRenewed',
        message: 'The self-signed certificate of the API was renewed',
        audience: 'admin',
      }
