// The life of a VM's record: its desired state and its deletion. Every step is a compare-and-set that is retried when
// it loses; after an interruption the next sweep continues.

import { systemClock, timestamp } from '../../platform/clock.ts'
import { allEnded } from '../../platform/parallel.ts'
import { type Entry, ignoreLost, type Precondition } from '../store.ts'
import type { Collections } from './collections.ts'
import type { NodeRecord, VmDesired, VmRecord } from './fleet-records.ts'
import { isFailedDeployment } from './node-vms.ts'
import { releaseQuota } from './quotas.ts'
import { recordEnd } from './usage.ts'

type Fleet = Pick<Collections, 'vms' | 'nodes' | 'vmSecrets' | 'quotas' | 'vmEnds'>

/**
 * Changes a VM's record, and retries after lost races. `change` gets the current record and returns the new one, or
 * undefined to leave it. Returns undefined if the VM does not exist.
 */
export async function changeVm(
  { vms }: Pick<Fleet, 'vms'>,
  key: string,
  uid: string,
  change: (record: VmRecord) => VmRecord | undefined,
): Promise<Entry<VmRecord> | undefined> {
  const entry = await vms.change(key, (record) => (record?.uid === uid ? change(record) : undefined))
  return entry?.value.uid === uid ? entry : undefined
}

export function withDesired(record: VmRecord, requested: Partial<VmDesired> & Pick<VmDesired, 'action'>): VmRecord {
  const { requestKey: _, generation, ...before } = record.desired
  const { requestKey, ...desired } = requested
  return {
    ...record,
    desired: { ...before, ...desired, ...(requestKey !== undefined && { requestKey }), generation: generation + 1 },
  }
}

/** Failures for which the service deletes a VM. */
export const lateDeployment = 'The deployment took too long'
export const ttlEnded = 'The TTL ended'

export const isDeleted = ({ desired }: VmRecord): boolean => desired.power === 'deleted'

/**
 * Deletes a VM. One without a node is deleted at once; failed deployments too; others when their agent reports that
 * nothing is left. `failure` is set if no caller requested it; then `isDue` decides again by the current record.
 */
export async function removeVm(
  fleet: Fleet,
  entry: Entry<VmRecord>,
  failure?: string,
  isDue: (record: VmRecord) => boolean = () => true,
): Promise<void> {
  const { key, value } = entry
  const marked = await changeVm(fleet, key, value.uid, (record) =>
    isDeleted(record) || !isDue(record)
      ? undefined
      : {
          ...withDesired(record, { power: 'deleted', action: 'delete' }),
          deletedAt: timestamp(systemClock.now()),
          ...(failure && { failure }),
        },
  )
  if (!marked || !isDeleted(marked.value)) return
  if (!marked.value.place || isFailedDeployment(value)) await forgetVm(fleet, key, value.uid)
}

/** Whether a VM counts against the quota. Failed deployments, and deleted VMs that never got a node, do not. */
export const holdsQuota = (record: VmRecord): boolean =>
  !isFailedDeployment(record) && !(isDeleted(record) && !record.place)

/**
 * Deletes the record of a VM of which nothing is left on a node, and releases what it used. The rest is swept if this
 * is interrupted.
 */
export async function forgetVm(fleet: Fleet, key: string, uid: string): Promise<void> {
  const known = fleet.vms.at(key)?.value
  const secret = fleet.vmSecrets.get('', uid)
  if (known?.uid === uid) {
    await dropSlot(fleet, known)
    await recordEnd(fleet.vmEnds, known, systemClock.now().getTime())
  }
  const left = [
    fleet.vms.change(key, (record) => (record?.uid === uid ? null : undefined)),
    // Uses the key, because the record may be deleted.
    releaseQuota(fleet, fleet.vms.scopeOf(key), uid),
    ...(secret ? [fleet.vmSecrets.delete(secret).catch(ignoreLost)] : []),
  ]
  // Even if one fails, the others end before the caller gets the error.
  await allEnded(left)
}

/** The record of a VM that goes back to the queue, because it has not run yet. */
export function unplaced(record: VmRecord): VmRecord | undefined {
  const { place: _, times, ...rest } = record
  if (isDeleted(record)) return undefined
  return withDesired({ ...rest, ...(times && { times: { requestedMs: times.requestedMs } }) }, { action: 'deploy' })
}

/**
 * Removes from a node's record the slots (warm VMs) that have become VMs. Must happen before these VMs are deleted, or
 * the slots could be taken again.
 */
export async function dropSlots(fleet: Pick<Fleet, 'nodes'>, node: string, uids: readonly string[]): Promise<void> {
  await changeNode(fleet, node, (record) => {
    if (!uids.some((uid) => record.slots?.[uid])) return undefined
    const slots = Object.fromEntries(Object.entries(record.slots ?? {}).filter(([uid]) => !uids.includes(uid)))
    return { ...record, slots }
  })
}

/** As `dropSlots`, for the slot that a VM has taken, if any. */
export async function dropSlot(fleet: Pick<Fleet, 'nodes'>, { place }: VmRecord): Promise<void> {
  if (place?.slot !== undefined) await dropSlots(fleet, place.node, [place.slot])
}

/** As `changeVm`, for a node. */
export function changeNode(
  { nodes }: Pick<Fleet, 'nodes'>,
  name: string,
  change: (record: NodeRecord) => NodeRecord | undefined,
  preconditions?: readonly Precondition[],
): Promise<Entry<NodeRecord> | undefined> {
  return nodes.change(nodes.key('', name), (record) => record && change(record), preconditions)
}

/** Lets the node take VMs again, unless another request has marked it since. */
export const unmarkNode = (fleet: Pick<Fleet, 'nodes'>, name: string, mark: string): Promise<unknown> =>
  changeNode(fleet, name, (record) => (record.leaving === mark ? withoutMark(record) : undefined))

export const withoutMark = ({ leaving: _, ...record }: NodeRecord): NodeRecord => record
