// Keeps pools filled with slots (warm VMs): marks slots for removal, adds new ones to the records of nodes, and reports
// why a pool has too few. Agents start and remove them like any VM. Runs on changes; rules/pools/pool-plan.ts decides.
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
import { changeKey, type Entry, ignoreLost, PreconditionFailed } from '../../store/store.ts'
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
  const filler = new PoolFiller(controller, placements)
  return startController(controller, 'fill-pools', {
    everyMs: sweepMs,
    run: () => filler.run(),
    follow: ({ nudge }) => filler.follow(nudge),
  })
}

class PoolFiller {
  readonly #controller: Controller
  readonly #placements: Placements
  /** Failures of slots in a row, by the uid of the pool. They are not stored, so a new leader begins with none. */
  readonly #failures = new Map<string, Failures>()
  /** Counts of removed slots by the uid of the pool, until they are in its record. */
  readonly #removed = new Map<string, Partial<Record<SlotEndReason, number>>>()
  /** VMs that fit on no node, by key. */
  readonly #waiting = new Map<string, VmRecord>()
  #nudge: () => void = () => undefined
  #timer: NodeJS.Timeout | undefined

  constructor(controller: Controller, placements: Placements) {
    this.#controller = controller
    this.#placements = placements
    for (const { key, value } of controller.collections.vms.each()) this.#note(key, value)
  }

  follow(nudge: () => void): readonly (() => void)[] {
    this.#nudge = nudge
    const { pools, nodes, nodeVms, vms, vmConfigs, images } = this.#controller.collections
    const nudgeIfAny = (): void => {
      if (pools.list().length > 0) nudge()
    }
    return [
      pools.view.subscribe((changes) => {
        for (const { type, previous } of changes)
          if (type === 'delete' && previous) this.#removed.delete(previous.value.uid)
        // Changes by this controller are no reason to run again.
        if (changes.some((change) => change.type === 'delete' || isOther(change.previous?.value, change.entry.value)))
          nudge()
      }),
      nodes.view.subscribe((changes) => {
        for (const change of changes)
          if (change.type === 'put') this.#countEnds(change.previous?.value, change.entry.value)
        nudgeIfAny()
      }),
      nodeVms.subscribe(nudgeIfAny),
      vmConfigs.view.subscribe(nudgeIfAny),
      images.view.subscribe(nudgeIfAny),
      vms.view.subscribe((changes) => {
        const noted = changes.map((change) =>
          this.#note(changeKey(change), change.type === 'put' ? change.entry.value : undefined),
        )
        if (noted.includes(true)) nudgeIfAny()
      }),
      () => clearTimeout(this.#timer),
    ]
  }

  async run(): Promise<void> {
    const { pools } = this.#controller.collections
    const { rooms } = this.#placements
    const plans: (PoolPlan & { readonly namespace: string })[] = []
    await this.#placements.exclusively(async () => {
      // Slots of deleted pools have to be removed, too.
      const namespaces = new Set([...pools.list().map(({ value }) => value.namespace), ...rooms.namespacesWithSlots()])
      for (const namespace of namespaces) {
        const nodes = rooms.in(namespace)
        const plan = { namespace, ...this.#plan(namespace, nodes) }
        plans.push(plan)
        await allEnded(nodes.map((room) => this.#carryOut(room, plan)))
      }
    })
    await Promise.all(plans.flatMap((plan) => pools.list(plan.namespace).map((entry) => this.#report(entry, plan))))
    clearTimeout(this.#timer)
    const nowMs = this.#nowMs()
    const againMs = Math.min(...plans.map((plan) => plan.againMs ?? Infinity))
    if (againMs < nowMs + sweepMs) this.#timer = setTimeout(() => this.#nudge(), againMs - nowMs + 1).unref()
  }

  #nowMs(): number {
    return this.#controller.clock.now().getTime()
  }

  /** Updates `#waiting` from a VM's record. Returns whether the VM fits on no node, or did not until now. */
  #note(key: string, record: VmRecord | undefined): boolean {
    const wasWaiting = this.#waiting.delete(key)
    if (record && isWaiting(record)) this.#waiting.set(key, record)
    return wasWaiting || this.#waiting.has(key)
  }

  /** Counts slots that were marked for removal. After each failed one the pool rests longer, until a slot is ready. */
  #countEnds(before: NodeRecord | undefined, node: NodeRecord): void {
    for (const [uid, { slot }] of slotsIn(node)) {
      const { poolUid, leaving } = slot
      if (slot.readyAt !== undefined && leaving === undefined) this.#failures.delete(poolUid)
      const was = before?.slots?.[uid]?.slot
      if (!leaving || !was || was.leaving) continue
      this.#removed.set(poolUid, sum(this.#removed.get(poolUid), { [leaving.reason]: 1 }))
      if (!isSlotFailure(leaving.reason)) continue
      const count = (this.#failures.get(poolUid)?.count ?? 0) + 1
      this.#failures.set(poolUid, { count, untilMs: this.#nowMs() + poolRestMs(count), problem: leaving.message })
    }
  }

  #plan(namespace: string, nodes: readonly NodeRoom[]): PoolPlan {
    return planPools({
      namespace,
      nowMs: this.#nowMs(),
      pools: this.#controller.collections.pools.list(namespace).map(({ value }) => this.#plannedPool(value)),
      slots: nodes.flatMap(({ entry, slots }) => slots.map(([uid, each]) => slotOf(entry.value, uid, each))),
      nodes: nodes.map((room) => Object.assign(room, { takesSlots: room.entry.value.report?.takesSlots === true })),
      waiting: [...this.#waiting.values()]
        .filter((vm) => vm.namespace === namespace)
        .toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
        .slice(0, maxWaiting)
        .map((vm) => ({ demand: demandOf(vm), key: warmKeyOf(vm) })),
    })
  }

  #plannedPool(record: PoolRecord): PlannedPool {
    const { name, uid, maxIdle, maxAgeSeconds, isPaused, isDrained = false, rotation = 0, state = 'running' } = record
    const scheduled = scheduledIdle(record.schedule ?? [], this.#nowMs())
    const idle = { minIdle: scheduled?.minIdle ?? record.minIdle, minIdleUntilMs: scheduled?.untilMs }
    const found = poolTemplate(this.#controller.collections, record)
    const template = 'problem' in found ? found : { key: slotKey(found.shape, found.pin), demand: found.demand }
    const rest = this.#failures.get(uid)
    return { name, uid, ...idle, maxIdle, maxAgeSeconds, isPaused, isDrained, rotation, state, template, rest }
  }

  /** Applies all changes of a node by one compare-and-set against the record that was planned with. */
  async #carryOut({ entry }: NodeRoom, { leaves, starts }: PoolPlan): Promise<void> {
    const { name, slots } = entry.value
    const leaving = leaves.filter(({ node }) => node === name)
    const starting = starts.filter(({ node }) => node === name)
    if (leaving.length === 0 && starting.length === 0) return
    const next: Record<string, SlotAllocation> = { ...slots }
    for (const { uid, end } of leaving) {
      const each = next[uid]
      if (each) next[uid] = { ...each, slot: { ...each.slot, leaving: end } }
    }
    for (const start of starting) {
      const uid = randomUUID()
      const slot = this.#newSlot(entry.value.namespace, start)
      if (slot) next[uid] = { ...slot, name: `warm-${uid.slice(0, 8)}` }
    }
    try {
      await this.#controller.collections.nodes.update(entry, { ...entry.value, slots: next }, [this.#placements.term])
      failpoint('pools.filled')
    } catch (error) {
      ignoreLost(error)
      if (error instanceof PreconditionFailed) this.#placements.unsure()
      this.#nudge()
    }
  }

  /** Returns undefined if the pool has changed since it was planned. */
  #newSlot(
    namespace: string,
    { pool, allocation }: PoolPlan['starts'][number],
  ): Omit<SlotAllocation, 'name'> | undefined {
    const { collections, clock } = this.#controller
    const record = collections.pools.get(namespace, pool.name)?.value
    const template = record?.uid === pool.uid ? poolTemplate(collections, record) : undefined
    if (!template || 'problem' in template) return undefined
    const { os, cpu, memoryMiB, gpus, ssh, vnc, screenshare } = allocation
    const slot: NodeSlot = {
      pool: pool.name,
      poolUid: pool.uid,
      createdAt: timestamp(clock.now()),
      ...(pool.rotation > 0 && { rotation: pool.rotation }),
      ...(record?.state !== undefined && { state: record.state }),
      ...(record?.readyCommand !== undefined && { readyCommand: record.readyCommand }),
      shape: template.shape,
      ...template.pin,
      ssh,
      screenshare,
      ...(vnc !== undefined && { vnc }),
    }
    return { namespace, ...(os !== undefined && { os }), cpu, memoryMiB, gpus, ports: portsIn(allocation, []), slot }
  }

  async #report({ key, value }: Entry<PoolRecord>, { statuses }: PoolPlan): Promise<void> {
    const { uid } = value
    const status = statuses.get(uid) ?? value.status
    const removed = this.#removed.get(uid)
    if (!removed && JSON.stringify(status) === JSON.stringify(value.status)) return
    this.#removed.delete(uid)
    await this.#controller.collections.pools.change(key, (record) =>
      record?.uid === uid
        ? { ...record, status, ...(removed && { removed: sum(record.removed, removed) }) }
        : undefined,
    )
  }
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
