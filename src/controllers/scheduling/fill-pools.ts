// Keeps the pools of warm VMs filled: marks slots for removal, adds new ones to the records of nodes, and reports why a
// pool has too few. Agents do the rest, as for any VM. Runs on changes; rules/pools/pool-plan.ts decides.
import { randomUUID } from 'node:crypto'
import { isSlotFailure, type SlotEndReason } from '../../api/vms/pools.ts'
import { timestamp } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Loop } from '../../platform/loop.ts'
import { allEnded } from '../../platform/parallel.ts'
import { demandOf } from '../../rules/placement.ts'
import { type PlannedPool, type PoolPlan, type PoolSlot, planPools, poolRestMs } from '../../rules/pools/pool-plan.ts'
import { scheduledIdle } from '../../rules/pools/schedule.ts'
import { slotKey, warmKeyOf } from '../../rules/pools/warm-match.ts'
import type { NodeRecord, NodeSlot, PoolRecord, SlotAllocation, VmRecord } from '../../store/records/fleet-records.ts'
import { portsIn } from '../../store/records/node-vms.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { isDeleted } from '../../store/records/vms.ts'
import { type Entry, ignoreLost, PreconditionFailed } from '../../store/store.ts'
import { type Controller, startController } from '../controller.ts'
import type { Placements } from './placements.ts'
import { poolTemplate } from './pool-template.ts'
import type { NodeRoom } from './rooms.ts'

const sweepMs = 30_000
/** The number of waiting VMs that one run considers. */
const maxWaiting = 200

interface Failures {
  readonly count: number
  readonly untilMs: number
  readonly problem: string
}

export function fillPools(controller: Controller, placements: Placements): Loop {
  const { collections, clock } = controller
  const { pools, nodes, nodeVms, vms, vmConfigs, images } = collections
  /** By the uid of the pool. Kept by the leader only, so a new leader begins without it. */
  const failures = new Map<string, Failures>()
  /** Counts of removed slots by the uid of the pool, until they are in its record. */
  const removed = new Map<string, Partial<Record<SlotEndReason, number>>>()
  let againTimer: NodeJS.Timeout | undefined
  const { rooms } = placements
  /** VMs that fit on no node, by key. */
  const waiting = new Map<string, VmRecord>()
  const note = (key: string, record: VmRecord | undefined): boolean => {
    const was = waiting.delete(key)
    if (record && isWaiting(record)) waiting.set(key, record)
    return was || waiting.has(key)
  }
  for (const { key, value } of vms.each()) note(key, value)

  const loop: Loop = startController(controller, 'fill-pools', {
    everyMs: sweepMs,
    follow,
    run: async () => {
      const plans: (PoolPlan & { readonly namespace: string })[] = []
      await placements.exclusively(async () => {
        for (const namespace of concerned()) {
          const here = rooms.in(namespace)
          const plan = { namespace, ...planFor(namespace, here) }
          plans.push(plan)
          await allEnded(here.map((room) => carryOut(room, plan)))
        }
      })
      await Promise.all(plans.flatMap((plan) => pools.list(plan.namespace).map((entry) => tell(entry, plan))))
      clearTimeout(againTimer)
      const nowMs = clock.now().getTime()
      const againMs = Math.min(...plans.map((plan) => plan.againMs ?? Infinity))
      againTimer = againMs < nowMs + sweepMs ? setTimeout(() => loop.nudge(), againMs - nowMs + 1).unref() : undefined
    },
  })

  /** Namespaces with pools, or with slots of deleted pools. */
  function concerned(): ReadonlySet<string> {
    const found = new Set(pools.list().map(({ value }) => value.namespace))
    for (const namespace of rooms.namespacesWithSlots()) found.add(namespace)
    return found
  }

  /** The loop starts before the constants below it are defined, so these are functions. */
  function nudgeIfAny(): void {
    if (pools.list().length > 0) loop.nudge()
  }

  function follow(): readonly (() => void)[] {
    return [
      pools.view.subscribe((changes) => {
        // Changes by this controller are no reason to run again.
        for (const { type, previous } of changes) if (type === 'delete' && previous) removed.delete(previous.value.uid)
        if (changes.some((change) => change.type === 'delete' || isOther(change.previous?.value, change.entry.value)))
          loop.nudge()
      }),
      nodes.view.subscribe((changes) => {
        for (const change of changes) if (change.type === 'put') countEnds(change.previous?.value, change.entry.value)
        nudgeIfAny()
      }),
      nodeVms.subscribe(nudgeIfAny),
      vmConfigs.view.subscribe(nudgeIfAny),
      images.view.subscribe(nudgeIfAny),
      vms.view.subscribe((changes) => {
        let isConcerned = false
        for (const change of changes)
          if (change.type === 'put' ? note(change.entry.key, change.entry.value) : note(change.key, undefined))
            isConcerned = true
        if (isConcerned) nudgeIfAny()
      }),
      () => clearTimeout(againTimer),
    ]
  }

  /** After a failed slot the pool rests, longer with each failure, until a slot is ready. */
  function countEnds(before: NodeRecord | undefined, node: NodeRecord): void {
    for (const [uid, { slot }] of slotsIn(node)) {
      const { poolUid, leaving } = slot
      if (slot.readyAt !== undefined && leaving === undefined) failures.delete(poolUid)
      const was = before?.slots?.[uid]?.slot
      if (!leaving || !was || was.leaving) continue
      const counts = removed.get(poolUid) ?? {}
      removed.set(poolUid, { ...counts, [leaving.reason]: (counts[leaving.reason] ?? 0) + 1 })
      if (!isSlotFailure(leaving.reason)) continue
      const count = (failures.get(poolUid)?.count ?? 0) + 1
      failures.set(poolUid, { count, untilMs: clock.now().getTime() + poolRestMs(count), problem: leaving.message })
    }
  }

  function planFor(namespace: string, here: readonly NodeRoom[]): PoolPlan {
    return planPools({
      namespace,
      nowMs: clock.now().getTime(),
      pools: pools.list(namespace).map(({ value }) => poolOf(value)),
      slots: here.flatMap(({ entry, slots }) => slots.map(([uid, each]) => slotOf(entry.value, uid, each))),
      nodes: here.map((room) => Object.assign(room, { takesSlots: room.entry.value.report?.takesSlots === true })),
      waiting: [...waiting.values()]
        .filter((vm) => vm.namespace === namespace)
        .toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
        .slice(0, maxWaiting)
        .map((vm) => ({ demand: demandOf(vm), key: warmKeyOf(vm) })),
    })
  }

  function poolOf(record: PoolRecord): PlannedPool {
    const { name, uid, maxIdle, maxAgeSeconds, isPaused, isDrained = false, rotation = 0, state = 'running' } = record
    const scheduled = scheduledIdle(record.schedule ?? [], clock.now().getTime())
    const idle = { minIdle: scheduled?.minIdle ?? record.minIdle, minIdleUntilMs: scheduled?.untilMs }
    const found = poolTemplate(collections, record)
    const template = 'problem' in found ? found : { key: slotKey(found.shape, found.pin), demand: found.demand }
    const rest = failures.get(uid)
    return { name, uid, ...idle, maxIdle, maxAgeSeconds, isPaused, isDrained, rotation, state, template, rest }
  }

  /** Applies all changes of a node by one compare-and-set against the record that was planned with. */
  async function carryOut({ entry }: NodeRoom, { leaves, starts }: PoolPlan): Promise<void> {
    const { name, slots } = entry.value
    const gone = leaves.filter(({ node }) => node === name)
    const begun = starts.filter(({ node }) => node === name)
    if (gone.length === 0 && begun.length === 0) return
    const next: Record<string, SlotAllocation> = { ...slots }
    for (const { uid, end } of gone) {
      const each = next[uid]
      if (each) next[uid] = { ...each, slot: { ...each.slot, leaving: end } }
    }
    for (const { pool, allocation } of begun) {
      const record = pools.get(entry.value.namespace, pool.name)?.value
      const found = record?.uid === pool.uid ? poolTemplate(collections, record) : undefined
      if (!found || 'problem' in found) continue
      const uid = randomUUID()
      const { os, cpu, memoryMiB, gpus, ssh, vnc, screenshare } = allocation
      const slot: NodeSlot = {
        pool: pool.name,
        poolUid: pool.uid,
        createdAt: timestamp(clock.now()),
        ...(pool.rotation > 0 && { rotation: pool.rotation }),
        ...(record?.state !== undefined && { state: record.state }),
        ...(record?.readyCommand !== undefined && { readyCommand: record.readyCommand }),
        shape: found.shape,
        ...found.pin,
        ssh,
        screenshare,
        ...(vnc !== undefined && { vnc }),
      }
      const { namespace } = entry.value
      const size = { ...(os !== undefined && { os }), cpu, memoryMiB, gpus, ports: portsIn(allocation, []) }
      next[uid] = { namespace, name: `warm-${uid.slice(0, 8)}`, ...size, slot }
    }
    try {
      await nodes.update(entry, { ...entry.value, slots: next }, [placements.term])
      failpoint('pools.filled')
    } catch (error) {
      ignoreLost(error)
      if (error instanceof PreconditionFailed) placements.unsure()
      loop.nudge()
    }
  }

  async function tell({ key, value }: Entry<PoolRecord>, { statuses }: PoolPlan): Promise<void> {
    const { uid } = value
    const status = statuses.get(uid) ?? value.status
    const more = removed.get(uid)
    if (!more && JSON.stringify(status) === JSON.stringify(value.status)) return
    removed.delete(uid)
    await pools.change(key, (record) =>
      record?.uid === uid ? { ...record, status, ...(more && { removed: sum(record.removed, more) }) } : undefined,
    )
  }

  return loop
}

/** Whether the scheduler found no room for the VM on any node. */
const isWaiting = (record: VmRecord): boolean =>
  !record.place &&
  !isDeleted(record) &&
  record.conditions.some(
    ({ type, status, reason }) =>
      type === 'Scheduled' && status === 'False' && (reason === 'NoNodeFits' || reason === 'NoFreeCores'),
  )

function isOther(before: PoolRecord | undefined, after: PoolRecord): boolean {
  if (!before) return true
  const wanted = ({ status: _, hits: __, misses: ___, removed: ____, ...record }: PoolRecord) => JSON.stringify(record)
  return wanted(before) !== wanted(after)
}

function sum(before: PoolRecord['removed'] = {}, more: NonNullable<PoolRecord['removed']>) {
  const keys = Object.keys({ ...before, ...more }) as SlotEndReason[]
  return Object.fromEntries(keys.map((key) => [key, (before[key] ?? 0) + (more[key] ?? 0)]))
}

function slotOf(node: NodeRecord, uid: string, each: SlotAllocation): PoolSlot {
  const { slot, os, cpu, memoryMiB, gpus } = each
  return {
    uid,
    node: node.name,
    poolUid: slot.poolUid,
    key: slotKey(slot.shape, slot),
    rotation: slot.rotation ?? 0,
    createdMs: Date.parse(slot.createdAt),
    isReady: slot.readyAt !== undefined,
    isLeaving: slot.leaving !== undefined,
    state: slot.state ?? 'running',
    hasCommand: slot.readyCommand !== undefined,
    os,
    cpu,
    memoryMiB,
    gpus,
  }
}
