// The life of a VM's record, for handlers and controllers alike: its desired state and its end.
// Everything is a compare-and-set, retried when it loses; cut off anywhere, the next sweep goes on.

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
 * Changes a VM's record until it succeeds. `change` gets the current record and returns the new one, or undefined to
 * leave it. Undefined: there is no such VM (any more).
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

export function withDesired(record: VmRecord, asked: Partial<VmDesired> & Pick<VmDesired, 'action'>): VmRecord {
  const { requestKey: _, generation, ...before } = record.desired
  const { requestKey, ...desired } = asked
  return {
    ...record,
    desired: { ...before, ...desired, ...(requestKey !== undefined && { requestKey }), generation: generation + 1 },
  }
}

/** Why a VM is removed when nobody asked for it. */
export const lateDeployment = 'The deployment took too long'
export const ttlEnded = 'The TTL ended'

export const isDeleted = ({ desired }: VmRecord): boolean => desired.power === 'deleted'

/**
 * Wants a VM gone. One that no node knows of goes at once; the others when their agents say that nothing is left.
 * `failure` is set when nobody asked for it; then `isDue` may say of the record as it is by then that it stays.
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

/** What it has of a node, or may get, counts against the quota; what failed for good, or never got a node, has nothing. */
export const holdsQuota = (record: VmRecord): boolean =>
  !isFailedDeployment(record) && !(isDeleted(record) && !record.place)

/** Nothing of it is left on a node: its record goes, and with it what it had of the node. What else was its own is swept if it is left. */
export async function forgetVm(fleet: Fleet, key: string, uid: string): Promise<void> {
  const known = fleet.vms.at(key)?.value
  const secret = fleet.vmSecrets.get('', uid)
  if (known?.uid === uid) {
    await dropSlot(fleet, known)
    await recordEnd(fleet.vmEnds, known, systemClock.now().getTime())
  }
  const left = [
    fleet.vms.change(key, (record) => (record?.uid === uid ? null : undefined)),
    // By the key: its record may be gone.
    releaseQuota(fleet, fleet.vms.scopeOf(key), uid),
    ...(secret ? [fleet.vmSecrets.delete(secret).catch(ignoreLost)] : []),
  ]
  // Nobody is told before all of it has come to its end.
  await allEnded(left)
}

/** Waits for a node anew: it has not run on the one that it had. */
export function unplaced(record: VmRecord): VmRecord | undefined {
  const { place: _, times, ...rest } = record
  if (isDeleted(record)) return undefined
  return withDesired({ ...rest, ...(times && { times: { requestedMs: times.requestedMs } }) }, { action: 'deploy' })
}

/** Slots that VMs have taken leave the record of their node; before these VMs do, or they would be there to be taken again. */
export async function dropSlots(fleet: Pick<Fleet, 'nodes'>, node: string, uids: readonly string[]): Promise<void> {
  await changeNode(fleet, node, (record) => {
    if (!uids.some((uid) => record.slots?.[uid])) return undefined
    const slots = Object.fromEntries(Object.entries(record.slots ?? {}).filter(([uid]) => !uids.includes(uid)))
    return { ...record, slots }
  })
}

/** As `dropSlots`, for the one that a VM has taken, if any. */
export async function dropSlot(fleet: Pick<Fleet, 'nodes'>, { place }: VmRecord): Promise<void> {
  if (place?.slot !== undefined) await dropSlots(fleet, place.node, [place.slot])
}

/** As changeVm, for a node. */
export function changeNode(
  { nodes }: Pick<Fleet, 'nodes'>,
  name: string,
  change: (record: NodeRecord) => NodeRecord | undefined,
  preconditions?: readonly Precondition[],
): Promise<Entry<NodeRecord> | undefined> {
  return nodes.change(nodes.key('', name), (record) => record && change(record), preconditions)
}

/** Takes VMs again, unless another request is about to remove or move it. */
export const unmarkNode = (fleet: Pick<Fleet, 'nodes'>, name: string, mark: string): Promise<unknown> =>
  changeNode(fleet, name, (record) => (record.leaving === mark ? withoutMark(record) : undefined))

export const withoutMark = ({ leaving: _, ...record }: NodeRecord): NodeRecord => record
