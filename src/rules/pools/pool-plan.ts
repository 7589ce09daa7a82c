// What the pools of a namespace do next: which slots go, which are started and where, and what a pool says of itself. Load comes
// first: a VM that waits gets the place of idle slots, and no slot starts where such a VM could run. Pure: the controller brings
// what is there, and writes what comes out.
import type { SlotEndReason } from '../../api/vms/pools.ts'
import { type Allocation, type Candidate, type Demand, mayBeMacos, place } from '../placement.ts'
import { summaryOf } from '../placement-reasons.ts'

export interface PlannedPool {
  readonly name: string
  readonly uid: string
  /** By its schedule, if it has one. */
  readonly minIdle: number
  /** When its schedule says something else. */
  readonly minIdleUntilMs?: number | undefined
  readonly maxIdle: number
  readonly maxAgeSeconds: number
  readonly isPaused: boolean
  readonly isDrained: boolean
  readonly rotation: number
  /** How its slots wait. */
  readonly state: SlotState
  /** What its slots are; or why there can be none now. */
  readonly template: { readonly key: string; readonly demand: Demand } | { readonly problem: string }
  /** Slots of it failed: no other is started before then. */
  readonly rest?: { readonly untilMs: number; readonly problem: string } | undefined
}

/** As memory they have no core and no memory of their node. */
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
  /** It is ready when a command of the pool passes. */
  readonly hasCommand: boolean
  readonly os?: string | undefined
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
}

export interface PoolNode extends Candidate {
  /** What it has is less from now on. */
  take(allocation: Allocation, reserved: readonly []): void
  readonly takesSlots: boolean
}

interface Waiting {
  readonly demand: Demand
  /** Of slots that it can take. */
  readonly key?: string | undefined
}

export interface PoolSituation {
  readonly namespace: string
  readonly nowMs: number
  readonly pools: readonly PlannedPool[]
  readonly slots: readonly PoolSlot[]
  readonly nodes: readonly PoolNode[]
  /** VMs that no node can take now, in the order in which they are served. */
  readonly waiting: readonly Waiting[]
}

interface Status {
  readonly ready: number
  readonly starting: number
  /** By its schedule. */
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
  /** When to look again though nothing has changed: a slot is too old then, a pool has rested, or its schedule says another number. */
  readonly againMs: number | undefined
}

/** Slots that boot at once on one node: more would slow each other and the VMs there. */
const startsPerNode = 4
/** A guest that has not answered by then never will. */
export const bootMs = 20 * 60_000

export function planPools(situation: PoolSituation): PoolPlan {
  const { pools, slots, nodes, nowMs } = situation
  const leaving = new Map<string, End>()
  const staying = (poolUid: string): PoolSlot[] =>
    slots.filter((slot) => slot.poolUid === poolUid && !slot.isLeaving && !leaving.has(slot.uid))

  const known = new Set(pools.map(({ uid }) => uid))
  for (const slot of slots)
    if (!known.has(slot.poolUid)) leaving.set(slot.uid, end('PoolDeleted', 'Its pool was deleted'))
  for (const pool of pools) rotate(pool)
  const wanted = giveWay(situation, leaving)

  const starts: PoolPlan['starts'][number][] = []
  const statuses = new Map<string, Status>()
  for (const pool of pools) statuses.set(pool.uid, fill(pool))
  const leaves = slots.flatMap(({ uid, node, isLeaving }) => {
    const why = leaving.get(uid)
    return why === undefined || isLeaving ? [] : [{ uid, node, end: why }]
  })
  return { leaves, starts, statuses, againMs: nextLook(situation) }

  /** What is of no use goes, a quarter of the pool at a time, so that there are always some; what is too much, at once. */
  function rotate(pool: PlannedPool): void {
    if (pool.isDrained) for (const { uid } of staying(pool.uid)) leaving.set(uid, end('Drained', 'The pool is drained'))
    // What is on a node that is away takes as long as that is: it holds up nobody else, and goes when it is back.
    const inWork = slots.filter(
      (slot) =>
        slot.poolUid === pool.uid && !leaving.has(slot.uid) && (slot.isLeaving || !slot.isReady) && isThere(slot),
    )
    let budget = Math.max(1, Math.floor(pool.minIdle / 4)) - inWork.length
    for (const slot of staying(pool.uid).toSorted((a, b) => a.createdMs - b.createdMs)) {
      const isLate = !slot.isReady && nowMs - slot.createdMs > bootMs
      const useless = isLate ? late(slot) : uselessness(pool, slot)
      const isAway = !isThere(slot)
      if (useless === undefined || (!isLate && (isAway || budget <= 0))) continue
      if (!isAway) budget -= 1
      leaving.set(slot.uid, useless)
    }
    const left = staying(pool.uid).filter(isThere)
    // Those of no use first, then those that are not ready yet, then the newest.
    const worth = (slot: PoolSlot): number => (uselessness(pool, slot) === undefined ? 2 : 0) + Number(slot.isReady)
    const order = left.toSorted((a, b) => worth(a) - worth(b) || b.createdMs - a.createdMs)
    for (const { uid } of order.slice(0, Math.max(0, left.length - pool.maxIdle)))
      leaving.set(uid, end('TooMany', 'The pool has more than it should'))
  }

  function uselessness(
    { template, maxAgeSeconds, rotation, state, isPaused }: PlannedPool,
    slot: PoolSlot,
  ): End | undefined {
    if (nowMs - slot.createdMs > maxAgeSeconds * 1_000) return end('TooOld', 'It is older than the pool allows')
    if ('problem' in template || template.key !== slot.key)
      return end('Changed', 'The image or the configuration has changed')
    // Those that can still be handed out wait until there are others again.
    if (!isPaused && slot.state !== state) return end('Changed', 'The pool keeps its VMs in another state')
    if (!isPaused && slot.rotation < rotation) return end('Rotated', 'The pool is rotated')
    const node = nodes.find(({ name }) => name === slot.node)
    return node?.unfit?.cause === 'cordoned' ? end('Cordoned', `Node ${slot.node} is cordoned`) : undefined
  }

  /** Of those that are to be replaced, too, most can still be handed out. */
  function canBeTaken({ template, uid }: PlannedPool, slot: PoolSlot): boolean {
    if (slot.poolUid !== uid || !slot.isReady || 'problem' in template || template.key !== slot.key) return false
    const node = nodes.find(({ name }) => name === slot.node)
    return node !== undefined && node.unfit === undefined
  }

  function fill(pool: PlannedPool): Status {
    const usable = staying(pool.uid).filter((slot) => isUsable(pool, slot))
    const ready = staying(pool.uid).filter((slot) => canBeTaken(pool, slot)).length
    let starting = usable.filter(({ isReady }) => !isReady).length
    const missing = Math.min(pool.minIdle - usable.length, pool.maxIdle - staying(pool.uid).filter(isThere).length)
    const reason = missing <= 0 ? undefined : start()
    const { minIdle, minIdleUntilMs } = pool
    return {
      ready,
      starting,
      ...(minIdleUntilMs !== undefined && { minIdle }),
      ...(reason !== undefined && { reason }),
    }

    function start(): string | undefined {
      const { template, rest } = pool
      if (pool.isDrained) return 'The pool is drained'
      if (pool.isPaused) return 'The pool is paused'
      if ('problem' in template) return template.problem
      if (rest && nowMs < rest.untilMs) return `The last slot failed; the next follows soon. ${rest.problem}`
      const booting = new Map<string, number>()
      for (const { node, isReady, isLeaving } of slots)
        if (!isReady && !isLeaving) booting.set(node, (booting.get(node) ?? 0) + 1)
      for (const { node } of starts) booting.set(node, (booting.get(node) ?? 0) + 1)
      const able = nodes.filter(({ takesSlots }) => takesSlots)
      if (able.length === 0) return `No node of ${situation.namespace} can keep warm VMs`
      for (let count = 0; count < missing; count++) {
        const free = able.filter(({ name }) => !wanted.has(name))
        const found = place(template.demand, free)
        if (!found.ok) {
          if (free.length < able.length && found.reasons.length === 0) return 'VMs wait for the place of its slots'
          return summaryOf(found.reasons, template.demand, situation.namespace)
        }
        const calm = free.filter(({ name }) => (booting.get(name) ?? 0) < startsPerNode)
        const chosen = place(template.demand, calm)
        // Those under way call for a look when they are up.
        if (!chosen.ok) return undefined
        const { node, allocation } = chosen
        node.take(allocation, [])
        booting.set(node.name, (booting.get(node.name) ?? 0) + 1)
        starts.push({ pool, node: node.name, allocation })
        starting += 1
      }
      return undefined
    }
  }

  /** One that is to be rotated, or on a node that is away, is no slot to count on. */
  function isUsable(pool: PlannedPool, slot: PoolSlot): boolean {
    return isThere(slot) && uselessness(pool, slot) === undefined
  }

  function isThere(slot: PoolSlot): boolean {
    const node = nodes.find(({ name }) => name === slot.node)
    return node !== undefined && (node.unfit === undefined || node.unfit.cause === 'cordoned')
  }
}

/** Idle slots make room for VMs that wait. Returns nodes that such a VM wants: nothing else is to come there. */
function giveWay({ slots, nodes, waiting }: PoolSituation, leaving: Map<string, End>): ReadonlySet<string> {
  const wanted = new Set<string>()
  /** What goes, and for whom there is room then already. */
  const promised = new Map<string, Freed>()
  /** Slots that a VM that waits is about to be handed. */
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
      // The newest first: who waits longest is the next to be handed out.
      const idle = here
        // What waits as memory has nothing to give.
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

/** How long a pool rests after so many failures in a row. */
export const poolRestMs = (failures: number): number => Math.min(300_000, 5_000 * 2 ** Math.max(0, failures - 1))
