// The life of a VM's record, for handlers and controllers alike: wishes, the end, and what a node has to give back.
// Everything is a compare-and-set that looks again when it loses; cut off anywhere, the next look goes on.

import { type Entry, ignoreLost, isFault } from '../store.ts'
import type { Collections } from './collections.ts'
import type { NodeRecord, VmRecord, VmWish } from './fleet-records.ts'

type Fleet = Pick<Collections, 'vms' | 'nodes' | 'vmSecrets'>

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
  for (;;) {
    const entry = vms.at(key)
    if (!entry || entry.value.uid !== uid) return undefined
    const changed = change(entry.value)
    if (!changed) return entry
    try {
      return await vms.update(entry, changed)
    } catch (error) {
      ignoreLost(error)
    }
  }
}

export const withWish = (record: VmRecord, wish: Partial<VmWish> & Pick<VmWish, 'action'>): VmRecord => ({
  ...record,
  wish: { ...record.wish, requestKey: undefined, ...wish, generation: record.wish.generation + 1 },
})

export const isDeleted = ({ wish }: VmRecord): boolean => wish.power === 'deleted'

/** A deployment that failed for good and that nobody waited for: it is shown, and nothing of it is on a node. */
export const isFailedDeployment = ({ observed, wish }: VmRecord): boolean =>
  !observed.hasRun && observed.power === 'failed' && observed.generation >= wish.generation

/**
 * Wants a VM gone. One that no node knows of goes at once; the others when their agents say that nothing is left.
 * `failure` is set when nobody asked for it.
 */
export async function removeVm(fleet: Fleet, entry: Entry<VmRecord>, failure?: string): Promise<void> {
  const { key, value } = entry
  const marked = await changeVm(fleet, key, value.uid, (record) =>
    isDeleted(record)
      ? undefined
      : { ...withWish(record, { power: 'deleted', action: 'delete' }), ...(failure && { failure }) },
  )
  if (marked && (!marked.value.place || isFailedDeployment(value))) await forgetVm(fleet, key, value.uid)
}

/** Nothing of it is left on a node: what it had of the node is free, then its record goes. */
export async function forgetVm(fleet: Fleet, key: string, uid: string): Promise<void> {
  for (;;) {
    const entry = fleet.vms.at(key)
    if (!entry || entry.value.uid !== uid) break
    if (entry.value.place) await release(fleet, entry.value.place.node, uid)
    try {
      await fleet.vms.delete(entry)
      break
    } catch (error) {
      ignoreLost(error)
    }
  }
  const secret = fleet.vmSecrets.get('', uid)
  if (secret) await fleet.vmSecrets.delete(secret).catch(ignoreLost)
}

/** Gives back what a VM has of a node. Nothing there: fine. */
export async function release(fleet: Pick<Fleet, 'nodes'>, node: string, uid: string): Promise<void> {
  await changeNode(fleet, node, (record) => {
    if (!record.allocations[uid]) return undefined
    const { [uid]: _, ...allocations } = record.allocations
    return { ...record, allocations }
  })
}

/** As changeVm, for a node. */
export async function changeNode(
  { nodes }: Pick<Fleet, 'nodes'>,
  name: string,
  change: (record: NodeRecord) => NodeRecord | undefined,
): Promise<Entry<NodeRecord> | undefined> {
  for (;;) {
    const entry = nodes.get('', name)
    if (!entry) return undefined
    const changed = change(entry.value)
    if (!changed) return entry
    try {
      return await nodes.update(entry, changed)
    } catch (error) {
      if (isFault(error, 'NotFound')) return undefined
      if (!isFault(error, 'Conflict')) throw error
    }
  }
}
