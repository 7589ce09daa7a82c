// Plans the pools of a namespace: which slots to remove, which to start and where, and the status of each pool. Waiting
// VMs come first: idle slots are removed for them, and no slot starts where such a VM could run.
import type { SlotEndReason } from '../../api/vms/pools.ts'
import { type Allocation, type Candidate, type Demand, mayBeMacos, place } from '../placement.ts'
import { summaryOf } from '../placement-reasons.ts'

export interface PlannedPool {
  readonly name: string
  readonly uid: string
  readonly minIdle: number
  /** When the schedule changes the number. */
  readonly minIdleUntilMs?: number | undefined
  readonly maxIdle: number
  readonly maxAgeSeconds: number
  readonly isPaused: boolean
  readonly isDrained: boolean
  readonly rotation: number
  readonly state: SlotState
  /** The key and demand of its slots, or why it can have none now. */
  readonly template: { readonly key: string; readonly demand: Demand } | { readonly problem: string }
  /** After failures no slot starts before then. */
  readonly rest?: { readonly untilMs: number; readonly problem: string } | undefined
}

/** Slots that are kept as memory use no cores and no memory of their node. */
type SlotState = 'running' | 'memory'

export interface PoolSlot {
  readonly uid: string
  readonly node: string
  readonly poolUid: string
  readonly key: string
  readonly rotation: number
  readonly createdMs: number
  readonly isReady: boolean
  readonly isLeaving: boolean
  readonly state: SlotState
  /** Whether a command of the pool decides that it is ready. */
  readonly hasCommand: boolean
  readonly os?: string | undefined
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
}

export interface PoolNode extends Candidate {
  /** Subtracts an allocation for the rest of the plan. */
  take(allocation: Allocation, reserved: readonly []): void
  readonly takesSlots: boolean
}

interface Waiting {
  readonly demand: Demand
  /** The key of pool slots that it can take. */
  readonly key?: string | undefined
}

export interface PoolSituation {
  readonly namespace: string
  readonly nowMs: number
  readonly pools: readonly PlannedPool[]
  readonly slots: readonly PoolSlot[]
  readonly nodes: readonly PoolNode[]
  /** VMs that fit on no node now, the oldest first. */
  readonly waiting: readonly Waiting[]
}

interface Status {
  readonly ready: number
  readonly starting: number
  readonly minIdle?: number
  readonly reason?: string
}

interface End {
  readonly reason: SlotEndReason
  readonly message: string
}

const late = ({ hasCommand }: PoolSlot): End =>
  end('NoAnswer', hasCommand ? 'Its readiness command did not pass in 20 minutes' : 'Its guest did not answer')

const end = (reason: SlotEndReason, message: string): End => ({ reason, message })

export interface PoolPlan {
  readonly leaves: readonly { readonly uid: string; readonly node: string; readonly end: End }[]
  readonly starts: readonly { readonly pool: PlannedPool; readonly node: string; readonly allocation: Allocation }[]
  /** By the uid of the pool. */
  readonly statuses: ReadonlyMap<string, Status>
  /**
   * When to plan again without a change: a slot becomes too old, a pool has rested, or a schedule changes its number.
   */
  readonly againMs: number | undefined
}

/** More concurrent boots on one node would slow each other and the VMs there. */
const startsPerNode = 4
/** A guest that has not answered by then never will. */
export const bootMs = 20 * 60_000

export function planPools(situation: PoolSituation): PoolPlan {
  const { pools, slots } = situation
  const planner = new Planner(situation)
  const known = new Set(pools.map(({ uid }) => uid))
  for (const slot of slots)
    if (!known.has(slot.poolUid)) planner.leaving.set(slot.uid, end('PoolDeleted', 'Its pool was deleted'))
  for (const pool of pools) planner.rotate(pool)
  const reserved = evictForWaiting(situation, planner.leaving)
  const statuses = new Map(pools.map((pool) => [pool.uid, planner.fill(pool, reserved)] as const))
  const leaves = slots.flatMap(({ uid, node, isLeaving }) => {
    const why = planner.leaving.get(uid)
    return why === undefined || isLeaving ? [] : [{ uid, node, end: why }]
  })
  return { leaves, starts: planner.starts, statuses, againMs: nextLook(situation) }
}

class Planner {
  readonly #situation: PoolSituation
  readonly #nodes: ReadonlyMap<string, PoolNode>
  /** Slots to remove, by uid. */
  readonly leaving = new Map<string, End>()
  readonly starts: PoolPlan['starts'][number][] = []

  constructor(situation: PoolSituation) {
    this.#situation = situation
    this.#nodes = new Map(situation.nodes.map((node) => [node.name, node]))
  }

  /** Replaces unusable slots, a quarter of the pool at a time so that some remain, and removes surplus slots. */
  rotate(pool: PlannedPool): void {
    const { slots, nowMs } = this.#situation
    if (pool.isDrained)
      for (const { uid } of this.#staying(pool)) this.leaving.set(uid, end('Drained', 'The pool is drained'))
    // Slots on lost nodes do not count as work in progress. They are removed when the node is back.
    const inWork = slots.filter(
      (slot) =>
        slot.poolUid === pool.uid &&
        !this.leaving.has(slot.uid) &&
        (slot.isLeaving || !slot.isReady) &&
        this.#isReachable(slot),
    )
    let budget = Math.max(1, Math.floor(pool.minIdle / 4)) - inWork.length
    for (const slot of this.#staying(pool).toSorted((a, b) => a.createdMs - b.createdMs)) {
      const isLate = !slot.isReady && nowMs - slot.createdMs > bootMs
      const why = isLate ? late(slot) : this.#uselessness(pool, slot)
      const isReachable = this.#isReachable(slot)
      if (why === undefined || (!isLate && (!isReachable || budget <= 0))) continue
      if (isReachable) budget -= 1
      this.leaving.set(slot.uid, why)
    }
    const left = this.#staying(pool).filter((slot) => this.#isReachable(slot))
    // Unusable slots come first, then those that are not ready, then the newest.
    const worth = (slot: PoolSlot): number =>
      (this.#uselessness(pool, slot) === undefined ? 2 : 0) + Number(slot.isReady)
    const order = left.toSorted((a, b) => worth(a) - worth(b) || b.createdMs - a.createdMs)
    for (const { uid } of order.slice(0, Math.max(0, left.length - pool.maxIdle)))
      this.leaving.set(uid, end('TooMany', 'The pool has more than it should'))
  }

  /** Starts missing slots, on no node of `reserved`, and returns the status of the pool. */
  fill(pool: PlannedPool, reserved: ReadonlySet<string>): Status {
    const staying = this.#staying(pool)
    const usable = staying.filter((slot) => this.#isReachable(slot) && this.#uselessness(pool, slot) === undefined)
    const missing = Math.min(
      pool.minIdle - usable.length,
      pool.maxIdle - staying.filter((slot) => this.#isReachable(slot)).length,
    )
    const before = this.starts.length
    const reason = missing <= 0 ? undefined : this.#start(pool, missing, reserved)
    const { minIdle, minIdleUntilMs } = pool
    return {
      ready: staying.filter((slot) => this.#canBeTaken(pool, slot)).length,
      starting: usable.filter(({ isReady }) => !isReady).length + this.starts.length - before,
      ...(minIdleUntilMs !== undefined && { minIdle }),
      ...(reason !== undefined && { reason }),
    }
  }

  /** Starts up to `missing` slots. Returns why others are missing. */
  #start(pool: PlannedPool, missing: number, reserved: ReadonlySet<string>): string | undefined {
    const { namespace, nodes, slots, nowMs } = this.#situation
    const { template, rest } = pool
    if (pool.isDrained) return 'The pool is drained'
    if (pool.isPaused) return 'The pool is paused'
    if ('problem' in template) return template.problem
    if (rest && nowMs < rest.untilMs) return `The last slot failed; the next follows soon. ${rest.problem}`
    const booting = new Map<string, number>()
    const boots = slots.filter(({ isReady, isLeaving }) => !isReady && !isLeaving)
    for (const { node } of [...boots, ...this.starts]) booting.set(node, (booting.get(node) ?? 0) + 1)
    const able = nodes.filter(({ takesSlots }) => takesSlots)
    if (able.length === 0) return `No node of ${namespace} can keep warm VMs`
    const free = able.filter(({ name }) => !reserved.has(name))
    for (let count = 0; count < missing; count++) {
      const found = place(template.demand, free)
      if (!found.ok) {
        if (free.length < able.length && found.reasons.length === 0) return 'Its nodes are reserved for waiting VMs'
        return summaryOf(found.reasons, template.demand, namespace)
      }
      const calm = free.filter(({ name }) => (booting.get(name) ?? 0) < startsPerNode)
      const chosen = place(template.demand, calm)
      // The slots that are booting trigger another plan when they are ready.
      if (!chosen.ok) return undefined
      const { node, allocation } = chosen
      node.take(allocation, [])
      booting.set(node.name, (booting.get(node.name) ?? 0) + 1)
      this.starts.push({ pool, node: node.name, allocation })
    }
    return undefined
  }

  #staying({ uid }: PlannedPool): PoolSlot[] {
    return this.#situation.slots.filter(
      (slot) => slot.poolUid === uid && !slot.isLeaving && !this.leaving.has(slot.uid),
    )
  }

  /** Why the slot is due for replacement. */
  #uselessness({ template, maxAgeSeconds, rotation, state, isPaused }: PlannedPool, slot: PoolSlot): End | undefined {
    if (this.#situation.nowMs - slot.createdMs > maxAgeSeconds * 1_000)
      return end('TooOld', 'It is older than the pool allows')
    if ('problem' in template || template.key !== slot.key)
      return end('Changed', 'The image or the configuration has changed')
    // A paused pool keeps slots that can still be handed out, because it cannot replace them.
    if (!isPaused && slot.state !== state) return end('Changed', 'The pool keeps its VMs in another state')
    if (!isPaused && slot.rotation < rotation) return end('Rotated', 'The pool is rotated')
    const isCordoned = this.#nodes.get(slot.node)?.unfit?.cause === 'cordoned'
    return isCordoned ? end('Cordoned', `Node ${slot.node} is cordoned`) : undefined
  }

  /** Most slots that are due for replacement can still be handed out. */
  #canBeTaken({ template }: PlannedPool, slot: PoolSlot): boolean {
    if (!slot.isReady || 'problem' in template || template.key !== slot.key) return false
    const node = this.#nodes.get(slot.node)
    return node !== undefined && node.unfit === undefined
  }

  #isReachable(slot: PoolSlot): boolean {
    const node = this.#nodes.get(slot.node)
    return node !== undefined && (node.unfit === undefined || node.unfit.cause === 'cordoned')
  }
}

/** Removes idle slots for waiting VMs. Returns the nodes that those VMs will use, where no slot may start. */
function evictForWaiting({ slots, nodes, waiting }: PoolSituation, leaving: Map<string, End>): ReadonlySet<string> {
  const wanted = new Set<string>()
  /** What waiting VMs will take of each node, as negative amounts. */
  const promised = new Map<string, Freed>()
  /** Slots that waiting VMs are about to take. */
  const spokenFor = new Set<string>()
  const nodeOf = (slot: PoolSlot): PoolNode | undefined => nodes.find(({ name }) => name === slot.node)
  for (const { demand, key } of waiting) {
    const own = slots.find((slot) => {
      if (key === undefined || slot.key !== key || !slot.isReady || slot.isLeaving) return false
      if (leaving.has(slot.uid) || spokenFor.has(slot.uid)) return false
      const node = nodeOf(slot)
      return node !== undefined && place(demand, [withFreed(node, [slot])]).ok
    })
    if (own) {
      spokenFor.add(own.uid)
      continue
    }
    let best:
      | { readonly node: string; readonly victims: readonly PoolSlot[]; readonly allocation: Allocation }
      | undefined
    for (const node of nodes) {
      const here = slots.filter((slot) => slot.node === node.name)
      const going = here.filter(({ uid, isLeaving }) => isLeaving || leaving.has(uid))
      // The newest are removed first, because the oldest are handed out first.
      const idle = here
        // A slot that is kept as memory would free nothing.
        .filter((slot) => slot.cpu > 0 && !going.includes(slot) && !spokenFor.has(slot.uid))
        .toSorted((a, b) => b.createdMs - a.createdMs)
      for (let count = 0; count <= idle.length; count++) {
        if (best && count >= best.victims.length) break
        const victims = idle.slice(0, count)
        const found = place(demand, [withFreed(node, [...going, ...victims], promised.get(node.name))])
        if (!found.ok) continue
        best = { node: node.name, victims, allocation: found.allocation }
        break
      }
    }
    if (!best) continue
    wanted.add(best.node)
    for (const { uid } of best.victims) leaving.set(uid, end('Evicted', 'A VM needs its place'))
    const before = promised.get(best.node) ?? nothing
    const { cpu, memoryMiB, gpus, os } = best.allocation
    promised.set(best.node, {
      cpu: before.cpu - cpu,
      memoryMiB: before.memoryMiB - memoryMiB,
      gpus: before.gpus - gpus,
      vms: before.vms - 1,
      macosVms: before.macosVms - (mayBeMacos(os) ? 1 : 0),
    })
  }
  return wanted
}

interface Freed {
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly vms: number
  readonly macosVms: number
}
const nothing: Freed = { cpu: 0, memoryMiB: 0, gpus: 0, vms: 0, macosVms: 0 }

function withFreed(node: PoolNode, slots: readonly PoolSlot[], promised = nothing): Candidate {
  const sum = (pick: (slot: PoolSlot) => number): number => slots.reduce((total, slot) => total + pick(slot), 0)
  return {
    ...node,
    freeCpu: node.freeCpu + sum(({ cpu }) => cpu) + promised.cpu,
    freeMemoryMiB: node.freeMemoryMiB + sum(({ memoryMiB }) => memoryMiB) + promised.memoryMiB,
    freeGpus: node.freeGpus + sum(({ gpus }) => gpus) + promised.gpus,
    vms: node.vms - slots.length - promised.vms,
    macosVms: node.macosVms - sum(({ os }) => (mayBeMacos(os) ? 1 : 0)) - promised.macosVms,
  }
}

function nextLook({ pools, slots, nowMs }: PoolSituation): number | undefined {
  const ages = new Map(pools.map(({ uid, maxAgeSeconds }) => [uid, maxAgeSeconds * 1_000] as const))
  const times = [
    ...slots.flatMap(({ poolUid, createdMs, isReady, isLeaving }) =>
      isLeaving ? [] : [createdMs + Math.min(ages.get(poolUid) ?? Infinity, isReady ? Infinity : bootMs)],
    ),
    ...pools.flatMap(({ rest }) => (rest ? [rest.untilMs] : [])),
    ...pools.flatMap(({ minIdleUntilMs }) => minIdleUntilMs ?? []),
  ].filter((atMs) => atMs > nowMs && atMs < Infinity)
  return times.length === 0 ? undefined : Math.min(...times)
}

/** How long a pool rests after consecutive failures. */
export const poolRestMs = (failures: number): number => Math.min(300_000, 5_000 * 2 ** Math.max(0, failures - 1))
