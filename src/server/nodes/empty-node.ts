// Removes or moves a node only while it has no VMs, although other servers may be placing VMs on it.
import { randomUUID } from 'node:crypto'
import { type ApiError, conflict, notFound } from '../../api/errors.ts'
import { caughtUp, currentRev } from '../../store/records/caught-up.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord } from '../../store/records/fleet-records.ts'
import { freeSlots } from '../../store/records/pools.ts'
import { changeNode, unmarkNode } from '../../store/records/vms.ts'
import { isRehearsal } from '../../store/rehearsal.ts'
import { type Entry, type Store, StoreError } from '../../store/store.ts'
import { vmNamesOn } from './node-view.ts'

const kind = 'nodes'
const catchUpMs = 5_000

interface EmptyNodeServices {
  readonly collections: Collections
  readonly store: Pick<Store, 'list' | 'reached'>
}

/** Waits until this server has seen all VMs that other servers have written. */
export async function seeAllVms({ store, collections }: EmptyNodeServices): Promise<void> {
  const rev = await currentRev(store)
  await caughtUp(store, [collections.vms.view], rev, AbortSignal.timeout(catchUpMs)).catch((cause) => {
    throw new StoreError('Unavailable', 'This server has not seen all VMs yet: try again', { cause })
  })
}

/**
 * Does `work` only if the node has no VMs. The node is marked before this is checked, so that a later placement is refused
 * and an earlier one is found. Another request has interfered if the record no longer has the mark.
 */
export async function whileEmpty<T>(
  services: EmptyNodeServices,
  { value }: Entry<NodeRecord>,
  what: 'moved' | 'removed',
  work: (mark: string | undefined) => Promise<T>,
): Promise<T> {
  const { collections } = services
  const { name, namespace } = value
  assertEmpty(collections, value, what)
  if (isRehearsal()) return work(undefined)
  const mark = randomUUID()
  await changeNode(collections, name, (record) => ({ ...record, leaving: mark }))
  try {
    await seeAllVms(services)
    const now = collections.nodes.get('', name)?.value
    if (now?.namespace !== namespace) throw notFound(kind, name, { namespace })
    assertEmpty(collections, now, what)
    return await work(mark)
  } catch (error) {
    await unmarkNode(collections, name, mark)
    throw error
  }
}

/** Throws if another request has replaced the mark. */
export function assertMarked(record: NodeRecord, mark: string | undefined): NodeRecord {
  if (mark === undefined || record.leaving === mark) return record
  throw conflict(kind, record.name, 'is being removed, moved or uncordoned by another request', 'Try again')
}

export function assertEmpty(collections: Collections, node: NodeRecord, what: 'moved' | 'removed'): void {
  const { name, namespace, isReady } = node
  const vms = vmNamesOn(collections, name)
  if (vms.length > 0) throw occupied(node, vms, what)
  // The warm VMs of a lost host are removed with its record, because no agent will report that they were deleted.
  const count = what === 'removed' && !isReady ? 0 : freeSlots(collections, node).length
  const hint = `Cordon the node, which removes its warm VMs: svc3 node cordon ${name} -n ${namespace}`
  if (count > 0) throw conflict(kind, name, `cannot be ${what} while it has warm VMs of pools (${count})`, hint)
}

function occupied({ name, namespace, isReady }: NodeRecord, vms: readonly string[], what: string): ApiError {
  const hint = isReady
    ? `Delete the VMs, or drain the node first: svc3 node drain ${name} -n ${namespace}`
    : `The node is NOT READY. If it will not come back, delete its VMs: svc3 vm delete NAME -n ${namespace} --force`
  return conflict(kind, name, `cannot be ${what} while it has VMs: ${vms.join(', ')}`, hint)
}
