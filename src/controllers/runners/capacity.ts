// How many runners each pool may have, as announced to GitHub: its placed VMs and its share of the free nodes and
// quota. Pools take turns, one VM each, so that no two of them count on the same room.
import { defaultNamespace } from '../../rules/names.ts'
import { type Demand, demandOf } from '../../rules/placement.ts'
import { firstExcess, leastAmounts, plus, totalOf } from '../../rules/queue/quota.ts'
import type { Collections } from '../../store/records/collections.ts'
import { quotaOf } from '../../store/records/quotas.ts'
import type { RunnerPoolRecord } from '../../store/records/runner-records.ts'
import { poolTemplate } from '../scheduling/pool-template.ts'
import type { Rooms } from '../scheduling/rooms.ts'
import { WarmSlots } from '../scheduling/warm-slots.ts'

/**
 * Returns the number for each pool by its uid. It is 0 only for pools that are being deleted, because GitHub never
 * delivers a job that was queued while 0 was announced.
 */
export function capacities(collections: Collections, rooms: Rooms): ReadonlyMap<string, number> {
  const found = new Map<string, number>()
  const pools = collections.runnerPools.list().map(({ value }) => value)
  if (pools.length === 0) return found
  rooms.look()
  const slots = new WarmSlots(collections, rooms)
  for (const [namespace, own] of Map.groupBy(pools, (pool) => pool.namespace)) share(namespace, own)
  return found

  function share(namespace: string, own: readonly RunnerPoolRecord[]): void {
    const limits = quotaOf(collections, namespace)?.value.limits ?? {}
    let used = totalOf(quotaOf(collections, namespace)?.value.used ?? {})
    const placed = placedIn(collections, namespace)
    for (const { uid, deleting } of own) found.set(uid, deleting ? 0 : (placed.get(uid) ?? 0))
    let open = own.flatMap((pool) => {
      const demand = pool.deleting || pool.isPaused ? undefined : demandIn(collections, pool)
      const warm = warmRequest(collections, pool)
      return demand ? [{ pool, demand, warm }] : []
    })
    while (open.length > 0)
      open = open.filter(({ pool: { uid, max }, demand, warm }) => {
        const had = found.get(uid) ?? 0
        const amounts = leastAmounts(demand)
        if (had >= max || firstExcess(limits, used, amounts)) return false
        const slot = warm && slots.take(warm)
        // A running warm VM has its room already. One that is kept as memory needs it when it is resumed.
        if (slot?.needsRoom) slot.node.take(slot.allocation, [])
        if (!slot) {
          const place = rooms.place(demand, namespace)
          if (!place.ok) return false
          place.node.take(place.allocation, [])
        }
        used = plus(used, amounts)
        found.set(uid, had + 1)
        return true
      })
    for (const { uid, deleting } of own) if (!deleting) found.set(uid, Math.max(1, found.get(uid) ?? 0))
  }
}

/** Counts the VMs of each pool that have a node, by the uid of the pool. */
function placedIn({ runners, vms }: Collections, namespace: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { value } of runners.list(namespace))
    if (vms.get(namespace, value.name)?.value.place) counts.set(value.poolUid, (counts.get(value.poolUid) ?? 0) + 1)
  return counts
}

/** Returns the pool's request for warm VMs. Without SSH its VMs get first-boot data, which excludes warm ones. */
function warmRequest(collections: Collections, pool: RunnerPoolRecord): Parameters<WarmSlots['take']>[0] | undefined {
  const template = pool.sshUser === undefined ? undefined : poolTemplate(collections, pool)
  if (!template || 'problem' in template) return undefined
  return { namespace: pool.namespace, shape: template.shape, ...template.pin, reservedPorts: [] }
}

function demandIn({ vmConfigs, images }: Collections, { namespace, config }: RunnerPoolRecord): Demand | undefined {
  const shape = (vmConfigs.get(namespace, config) ?? vmConfigs.get(defaultNamespace, config))?.value.shape
  return shape && demandOf({ shape, reservedPorts: [], os: images.get('', shape.image)?.value.os })
}
