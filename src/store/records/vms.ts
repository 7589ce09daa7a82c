// The life of a VM's record, for handlers and controllers alike: its desired state, its end, what a node gets back.
// Everything is a compare-and-set, retried when it loses; cut off anywhere, the next sweep goes on.

import { systemClock, timestamp } from '../../platform/clock.ts'
import { type Entry, ignoreLost } from '../store.ts'
import type { Collections } from './collections.ts'
import type { NodeRecord, VmDesired, VmRecord } from './fleet-records.ts'
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

export const withDesired = (record: VmRecord, desired: Partial<VmDesired> & Pick<VmDesired, 'action'>): VmRecord => ({
  ...record,
  desired: { ...record.desired, requestKey: undefined, ...desired, generation: record.desired.generation + 1 },
})

/** Why a VM is removed when nobody asked for it. */
export const lateDeployment = 'The deployment took too long'
export const ttlEnded = 'The TTL ended'

export const isDeleted = ({ desired }: VmRecord): boolean => desired.power === 'deleted'

/** A deployment that failed for good and that nobody waited for: it is shown, and nothing of it is on a node. */
export const isFailedDeployment = ({ observed, desired }: VmRecord): boolean =>
  !observed.hasRun && observed.power === 'failed' && observed.generation >= desired.generation

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

/**
 * Nothing of it is left on a node: what it had of the node is free, and its record goes. All at once: cut off in between, what
 * it had without its record is swept, and a record without that is forgotten again.
 */
export async function forgetVm(fleet: Fleet, key: string, uid: string): Promise<void> {
  const known = fleet.vms.at(key)?.value
  const secret = fleet.vmSecrets.get('', uid)
  const node = known?.uid === uid ? known.place?.node : undefined
  if (known?.uid === uid) await recordEnd(fleet.vmEnds, known, systemClock.now().getTime())
  const left = [
    fleet.vms.change(key, (record) => (record?.uid === uid ? null : undefined)),
    ...(node === undefined ? [] : [release(fleet, node, uid)]),
    releaseQuota(fleet, namespaceIn(fleet, key), uid),
    ...(secret ? [fleet.vmSecrets.delete(secret).catch(ignoreLost)] : []),
  ]
  // Nobody is told before all of it has come to its end.
  await Promise.all(left).finally(() => Promise.allSettled(left))
}

/** By the key: its record is gone. */
const namespaceIn = ({ vms }: Pick<Fleet, 'vms'>, key: string): string =>
  decodeURIComponent(key.slice(vms.prefix.length).split('/')[0] ?? '')

/** Gives back what a VM has of a node. Nothing there: fine. */
export async function release(fleet: Pick<Fleet, 'nodes'>, node: string, uid: string): Promise<void> {
  await changeNode(fleet, node, (record) => {
    if (!record.allocations[uid]) return undefined
    const { [uid]: _, ...allocations } = record.allocations
    return { ...record, allocations }
  })
}

/** As changeVm, for a node. */
export function changeNode(
  { nodes }: Pick<Fleet, 'nodes'>,
  name: string,
  change: (record: NodeRecord) => NodeRecord | undefined,
): Promise<Entry<NodeRecord> | undefined> {
  return nodes.change(nodes.key('', name), (record) => record && change(record))
}
