// Actions on a VM: writes its desired state, and waits until the node has reached it.
import { ApiError, conflict, notFound } from '../../api/errors.ts'
import { powerAfter, type VmAction } from '../../rules/vm-actions.ts'
import type { VmCapture, VmDesired, VmRecord } from '../../store/records/fleet-records.ts'
import { changeVm, forgetVm, isDeleted, withDesired } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import { existingIn } from '../gate/existing.ts'
import { WaitedTooLong } from '../nodes/waits.ts'
import { type AwaitServices, nodeFailure } from './await-deployment.ts'
import { isRepeated } from './captures.ts'
import { interruptionOf, throwIfInterrupted } from './interruption.ts'
import { assertMay } from './refusals.ts'

const kind = 'vms'
const actionTimeoutMs = 10 * 60_000
const deleteTimeoutMs = 60_000

export interface VmPath {
  readonly namespace: string
  readonly vm: string
}

interface ActionRequest {
  readonly action: VmAction
  readonly requestKey: string | undefined
  desired(record: VmRecord): Partial<VmDesired>
  /** Changes the record further, before it is written. */
  prepare?(next: VmRecord): VmRecord
}

/** Throws if the rules do not allow the action now, or if the node fails to carry it out. */
export async function changePower(
  services: AwaitServices,
  { namespace, vm: name }: VmPath,
  { action, requestKey, desired, prepare }: ActionRequest,
): Promise<Entry<VmRecord>> {
  const { collections } = services
  const { key, value } = existingIn(collections.vms, kind)(namespace, name)
  const written = await changeVm(collections, key, value.uid, (record) => {
    if (isRepeated(record, requestKey)) return undefined
    assertMay(action, record)
    const next = withDesired(record, { power: powerAfter(action), action, requestKey, ...desired(record) })
    return prepare ? prepare(next) : next
  })
  if (!written) throw notFound(kind, name, { namespace, hint: 'The VM was deleted in the meantime' })
  return awaitAction(services, written, action)
}

async function awaitAction(
  services: AwaitServices,
  { key, value }: Entry<VmRecord>,
  action: VmAction,
): Promise<Entry<VmRecord>> {
  const { name, namespace, uid, desired } = value
  const look = (entry: Entry<VmRecord> | undefined): Entry<VmRecord> | undefined => {
    if (!entry || entry.value.uid !== uid || isDeleted(entry.value))
      throw conflict(kind, name, `was deleted during ${action}`, 'Deploy another VM')
    return entry.value.observed.generation >= desired.generation ? entry : undefined
  }
  try {
    const entry = await services.waits.until(key, look, { ms: actionTimeoutMs, signal: interruptionOf(services) })
    const { problem } = entry.value.observed
    if (problem === undefined) return entry
    const hint = `Run svc3 vm logs ${name} -n ${namespace} to see what the guest printed`
    throw nodeFailure(entry.value.observed, `VM ${name}: ${action} failed. ${problem}`, { kind, name, hint })
  } catch (error) {
    throwIfInterrupted(services, value)
    if (!(error instanceof WaitedTooLong)) throw error
    const hint = `It continues. Run svc3 vm show ${name} -n ${namespace} to follow it`
    throw new ApiError('Timeout', `VM ${name}: ${action} is still in progress`, { kind, name, hint })
  }
}

/** Waits until the record of a deleted VM is removed. `isForced` removes it without the node. */
export async function awaitDeleted(
  services: AwaitServices,
  { key, value }: Entry<VmRecord>,
  isForced: boolean,
): Promise<void> {
  const { collections, waits } = services
  if (isForced) await forgetVm(collections, key, value.uid)
  const isRemoved = (entry: Entry<VmRecord> | undefined): true | undefined =>
    entry?.value.uid === value.uid ? undefined : true
  try {
    await waits.until(key, isRemoved, { ms: deleteTimeoutMs, signal: interruptionOf(services) })
  } catch {
    throwIfInterrupted(services, value)
    throw stillDeleting(value, collections.vms.at(key)?.value.captures ?? [])
  }
}

function stillDeleting({ name, namespace, place }: VmRecord, captures: readonly VmCapture[]): ApiError {
  const force = `svc3 vm delete ${name} --force -n ${namespace}`
  if (captures.length === 0) {
    const where = place ? `node ${place.node}` : 'its node'
    const hint = `It is deleted when the node responds. An administrator can remove it now: ${force}`
    return new ApiError('Timeout', `VM ${name} is being deleted, but ${where} has not responded yet`, {
      kind,
      name,
      hint,
    })
  }
  const targets = captures.map((capture) => (capture.kind === 'push' ? capture.reference : capture.image)).join(', ')
  return new ApiError('Timeout', `VM ${name} is being deleted; it is still being saved as ${targets}`, {
    kind,
    name,
    hint: `Follow it with svc3 image list -n ${namespace} or svc3 vm get-push-status -n ${namespace}. An administrator can abandon the save: ${force}`,
  })
}
