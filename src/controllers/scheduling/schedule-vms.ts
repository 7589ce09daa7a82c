// Places VMs: those that wait, and those that are about to be written. Capacity is first reserved in the node's record by
// compare-and-set, then the VM is bound: no overcommit, and the next sweep frees what a crash leaves reserved. Runs on changes,
// without polling.
import { timestamp } from '../../platform/clock.ts'
import { createSlices } from '../../platform/event-loop.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { type Allocation, demandOf } from '../../rules/placement.ts'
import { isAboutCores, isAboutPorts, summaryOf } from '../../rules/placement-reasons.ts'
import type { Shares } from '../../rules/queue/queue.ts'
import { leastAmounts } from '../../rules/queue/quota.ts'
import { amountsOn } from '../../rules/queue/shares.ts'
import { Starvation, type Turn, Turns } from '../../rules/queue/turns.ts'
import type { NodeAllocation, NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { quotaOf, releaseQuota } from '../../store/records/quotas.ts'
import { changeNode, changeVm, forgetVm, isDeleted, isFailedDeployment, release } from '../../store/records/vms.ts'
import { type Entry, ignoreLost, zeroRev } from '../../store/store.ts'
import type { Controller, Presence } from '../controller.ts'
import { Admission, hasQuota, mayAdmitMore, QuotaSweep } from './admission.ts'
import { newPorts, PortTurns } from './new-ports.ts'
import { type FirstWrite, NewVm, NewVms } from './new-vms.ts'
import { OwnerUsage } from './owner-usage.ts'
import { followRooms, portsIn, type Room } from './rooms.ts'
import { placedBy, type Taken, WarmSlots } from './warm-slots.ts'

const sweepMs = 30_000
/** New reasons are written at once, later ones at most this often. */
const reasonsMs = 2_000

type Pending = Entry<VmRecord>
/** Why a VM stays where it is, for people and in one word for programs. */
interface Refusal {
  readonly message: string
  readonly reason: 'NoNodeFits' | 'NoFreeCores' | 'OverQuota'
}
interface Chosen {
  readonly vm: Pending
  readonly slot?: Taken | undefined
  readonly allocation: Allocation
  /** It is not written yet. */
  readonly unwritten?: NewVm | undefined
}

interface SchedulerServices extends Controller {
  /** Where VMs are asked for on the server that schedules. */
  readonly newVms?: NewVms
}

export function scheduleVms(controller: SchedulerServices, presence: Presence): Loop {
  const { collections, clock, log, newVms = new NewVms() } = controller
  const { vms, nodes, quotas } = collections
  /** Keys of VMs that wait for a node, or for other ports. */
  const waiting = new Set<string>()
  /** Those of them to be tried: new ones, or all after nodes may have got more capacity. */
  const fresh = new Set<string>()
  let shouldTryAll = false
  const explainedMs = new Map<string, number>()
  const portTurns = new PortTurns()
  const quotaSweep = new QuotaSweep()
  const usage = new OwnerUsage(collections)
  const starvation = new Starvation<ShapedTurn>()
  const followed = followRooms(nodes, presence)
  const { rooms } = followed
  /** Made once for each that waits: what counts of it stays, and thousands may wait. */
  const turnsKnown = new Map<string, ShapedTurn>()
  const knownTurn = (vm: Pending): ShapedTurn => {
    const known = turnsKnown.get(vm.key)
    if (known?.uid === vm.value.uid) return known
    const turn = turnOf(vm)
    turnsKnown.set(vm.key, turn)
    return turn
  }
  /** By the keys that they are to have. */
  const arriving = new Map<string, NewVm>()
  let isSweeping = false
  let sweptMs = Number.NEGATIVE_INFINITY
  let laterTimer: NodeJS.Timeout | undefined

  const note = (key: string, record: VmRecord | undefined): void => {
    usage.note(key, record)
    if (record?.observed.power !== 'starting' && record?.observed.power !== 'pending') portTurns.forget(key)
    if (record && needsUs(record)) {
      if (!waiting.has(key) || record.place) fresh.add(key)
      waiting.add(key)
    } else if (waiting.delete(key)) forget(key)
  }
  const forget = (key: string): void => {
    fresh.delete(key)
    explainedMs.delete(key)
    turnsKnown.delete(key)
    if (starvation.forget(key)) lookAgain()
  }
  /** What did not fit may fit now. */
  const lookAgain = (): void => {
    if (waiting.size === 0) return
    shouldTryAll = true
    loop.nudge()
  }
  /** They are written as they are, and wait. */
  const sendBack = (): void => {
    for (const each of arriving.values()) each.sentBack()
    arriving.clear()
  }
  for (const { key, value } of vms.each()) note(key, value)

  const loop = startLoop({
    everyMs: sweepMs,
    failed: (error) => log.error('schedule-vms failed and will run again', {}, error),
    run: async (signal) => {
      if (performance.now() - sweptMs >= sweepMs * 0.9) {
        sweptMs = performance.now()
        isSweeping = true
        sendBack()
        await sweep().finally(() => {
          isSweeping = false
        })
        shouldTryAll = true
      }
      if (!signal.aborted) await schedule()
    },
  })
  const unsubscribes = [
    newVms.open((value) => {
      const key = vms.key(value.namespace, value.name)
      // Those who wait go first, and nobody waits for a sweep. What a quota counts must be there: a crash would leave it counted.
      if (waiting.size > 0 || isSweeping || arriving.has(key) || hasQuota(collections, value.namespace))
        return undefined
      const unwritten = new NewVm({ key, value, rev: zeroRev })
      arriving.set(key, unwritten)
      loop.nudge()
      return unwritten.offer
    }),
    vms.view.subscribe((changes) => {
      for (const change of changes) {
        if (change.type === 'put') note(change.entry.key, change.entry.value)
        else note(change.key, undefined)
      }
      if (fresh.size > 0) loop.nudge()
    }),
    nodes.view.subscribe((changes) => {
      if (waiting.size === 0) return
      const hasRoom = changes.some((change) => change.type === 'delete' || mayHaveMore(change.previous, change.entry))
      if (hasRoom) lookAgain()
    }),
    quotas.view.subscribe((changes) => {
      if (changes.some((change) => mayAdmitMore(change.previous, change.type === 'put' ? change.entry : undefined)))
        lookAgain()
    }),
  ]

  async function schedule(): Promise<void> {
    const arrived = new Map(arriving)
    arriving.clear()
    try {
      await placeAll(arrived)
    } finally {
      for (const unwritten of arrived.values()) unwritten.sentBack()
    }
  }

  async function placeAll(arrived: ReadonlyMap<string, NewVm>): Promise<void> {
    if (shouldTryAll) for (const key of waiting) fresh.add(key)
    shouldTryAll = false
    if (fresh.size === 0 && arrived.size === 0) return
    rooms.look()
    const admission = new Admission(collections)
    const warm = new WarmSlots(collections, rooms)
    const chosen = new Map<Room, Chosen[]>()
    const unplaced: { vm: Pending; refusal: Refusal }[] = []
    /** What did not fit does not fit a second time in one run, whatever ports it wants besides. */
    const refused = new Map<string, Refusal>()
    const pending = [...fresh].flatMap((key) => vms.at(key) ?? [])
    fresh.clear()
    const toPlace = pending.filter(({ value }) => !value.place).map(knownTurn)
    for (const { entry } of arrived.values()) toPlace.push(turnOf(entry))
    const turns = new Turns(starvation, toPlace, { sharesOf, nowMs: clock.now().getTime() })
    const others = createSlices()
    for (let turn = turns.next(); turn; turn = turns.next()) {
      await others()
      const unwritten = arrived.get(turn.key)
      const vm = unwritten?.entry ?? vms.at(turn.key)
      if (!vm || vm.value.place) continue
      const { demand, shape } = turn
      const overQuota = admission.refusal(vm.value, turn.amounts)
      if (overQuota !== undefined) {
        unplaced.push({ vm, refusal: { message: overQuota, reason: 'OverQuota' } })
        continue
      }
      const slot = warm.take(vm.value)
      if (slot && unwritten) {
        // A slot is given to a VM that is there: after a crash the next leader finishes that.
        unwritten.sentBack()
        continue
      }
      const candidates = rooms.in(vm.value.namespace)
      const known = refused.get(shape)
      const found = slot ? placedBy(slot) : known === undefined ? rooms.place(demand, turn.namespace, shape) : undefined
      if (!found?.ok) {
        const reasons = found?.reasons ?? []
        const refusal = known ?? {
          message: summaryOf(reasons, demand, vm.value.namespace),
          reason: isAboutCores(reasons) ? 'NoFreeCores' : 'NoNodeFits',
        }
        // What is about ports says nothing of a VM that wants other ones.
        if (known === undefined && !isAboutPorts(reasons)) refused.set(shape, refusal)
        const kept = isAboutPorts(reasons) ? undefined : turns.refused(turn, candidates)
        if (kept !== undefined) rooms.keepFor(kept, vm.value.name)
        unplaced.push({ vm, refusal: kept === undefined ? refusal : withKept(refusal, kept) })
        continue
      }
      const { node: room, allocation } = found
      const beyondQuota = admission.take(vm.value, room, allocation)
      if (beyondQuota !== undefined) {
        unplaced.push({ vm, refusal: { message: beyondQuota, reason: 'OverQuota' } })
        continue
      }
      turns.placed(turn, amountsOn(room, allocation), room)
      if (!slot || slot.needsRoom) room.take(allocation, demand.reservedPorts)
      const already = chosen.get(room)
      const one = { vm, allocation, slot, unwritten }
      if (already) already.push(one)
      else chosen.set(room, [one])
    }
    const nowMs = performance.now()
    const taken = pending.filter(({ value }) => value.place)
    const inTurn = taken.filter(({ key }) => portTurns.take(key, nowMs))
    if (inTurn.length < taken.length) later()
    await Promise.all([
      ...[...chosen].map(([room, list]) => settle(room, list, admission, warm)),
      ...unplaced.map(({ vm, refusal }) => explain(vm, refusal, arrived.get(vm.key))),
      ...inTurn.map((vm) => newPorts(controller, vm, rooms)),
    ])
    await warm.count()
  }

  /** What the owners of a namespace have, and what there is. */
  const sharesOf = (namespace: string): Shares => ({
    usage: usage.in(namespace),
    weights: quotaOf(collections, namespace)?.value.weights ?? {},
    total: rooms.capacityIn(namespace),
  })

  /** Reserves for all of them at once, then binds each. A node that changed meanwhile is tried again. */
  async function settle({ entry }: Room, all: readonly Chosen[], admission: Admission, warm: WarmSlots): Promise<void> {
    const refused = await admission.refused(entry.value.namespace)
    const list = refused ? all.filter(({ vm }) => !refused.has(vm.value.uid)) : all
    if (list.length < all.length) lookAgain()
    if (list.length === 0) return
    const allocations: Record<string, NodeAllocation> = { ...entry.value.allocations }
    for (const { vm, allocation, slot } of list) {
      if (slot) delete allocations[slot.uid]
      allocations[vm.value.uid] = reservation(vm.value, allocation, slot)
    }
    try {
      await nodes.update(entry, { ...entry.value, allocations })
    } catch (error) {
      ignoreLost(error)
      for (const { vm } of list) if (waiting.has(vm.key)) fresh.add(vm.key)
      return loop.nudge()
    }
    failpoint('schedule.reserved')
    const { name: node } = entry.value
    await Promise.all(
      list.map(async (one) => {
        const { vm, slot } = one
        const placed = await bind(one, entry.value)
        // The next sweep finds whether it is there.
        if (placed === 'unknown') return
        // It was deleted meanwhile.
        if (placed?.value.place?.node === node) warm.placed(placed.value, slot)
        else await release(collections, node, vm.value.uid)
        if (!placed) await releaseQuota(collections, vm.value.namespace, vm.value.uid)
      }),
    )
    failpoint('schedule.placed')
  }

  /** Undefined: there is no such VM. */
  async function bind(
    { vm, allocation, slot, unwritten }: Bound,
    node: NodeRecord,
  ): Promise<Entry<VmRecord> | 'unknown' | undefined> {
    if (unwritten) return ifWritten(await unwritten.offered(placedOn(node, vm.value, allocation, slot)))
    return changeVm(collections, vm.key, vm.value.uid, (record) =>
      record.place || isDeleted(record) ? undefined : placedOn(node, record, allocation, slot),
    )
  }

  function placedOn(
    { name: node, report }: NodeRecord,
    record: VmRecord,
    { ssh, vnc, screenshare, memoryMiB }: Bound['allocation'],
    slot: Taken | undefined,
  ): VmRecord {
    const spot = { node, ip: report?.ip ?? '', memoryMiB, ssh, screenshare, ...(vnc !== undefined && { vnc }) }
    return {
      ...record,
      place: slot ? { ...spot, slot: slot.uid } : spot,
      ...(slot && { warm: slot.pool }),
      ...(record.times && { times: { ...record.times, placedMs: clock.now().getTime() } }),
      conditions: withScheduled(record, 'True', { reason: 'Placed', message: `Placed on ${node}` }),
    }
  }

  /** Of a leader that died after it had given a slot to a VM in the node's record. */
  async function finishClaims(): Promise<void> {
    const warm = new WarmSlots(collections, rooms)
    const others = createSlices()
    for (const { value: node } of nodes.each()) {
      await others()
      for (const [uid, { namespace, name, memoryMiB, from, claim }] of Object.entries(node.allocations)) {
        const vm = from !== undefined && claim ? vms.get(namespace, name) : undefined
        if (from === undefined || !claim || vm?.value.uid !== uid || vm.value.place) continue
        const slot = { uid: from, pool: claim.pool }
        const bound = await bind({ vm, allocation: { ...claim, memoryMiB }, slot }, node)
        if (bound !== 'unknown' && bound?.value.place?.slot === from) warm.placed(bound.value, slot)
      }
    }
    await warm.count()
  }

  async function explain({ key, value }: Pending, refusal: Refusal, unwritten?: NewVm): Promise<void> {
    const nowMs = performance.now()
    if (unwritten) {
      explainedMs.set(key, nowMs)
      const conditions = withScheduled(value, 'False', refusal)
      if (!ifWritten(await unwritten.offered({ ...value, conditions }))) forget(key)
      return
    }
    const current = value.conditions.find(({ type }) => type === 'Scheduled')
    if (current?.message === refusal.message) return
    if (nowMs - (explainedMs.get(key) ?? Number.NEGATIVE_INFINITY) < reasonsMs) return later()
    explainedMs.set(key, nowMs)
    await changeVm(collections, key, value.uid, (record) =>
      record.place || isDeleted(record)
        ? undefined
        : { ...record, conditions: withScheduled(record, 'False', refusal) },
    )
  }

  /** Reasons that were too early to report, and ports, are written with the next run. */
  function later(): void {
    laterTimer ??= setTimeout(() => {
      laterTimer = undefined
      lookAgain()
    }, reasonsMs).unref()
  }

  function withScheduled(
    record: VmRecord,
    status: 'True' | 'False',
    why: { readonly reason: string; readonly message: string },
  ): VmRecord['conditions'] {
    const condition = { type: 'Scheduled', status, ...why, at: timestamp(clock.now()) } as const
    return [...record.conditions.filter(({ type }) => type !== 'Scheduled'), condition]
  }

  /** Cleans up after a crash: reservations of VMs that do not exist, and VMs to be deleted that are on no node. */
  async function sweep(): Promise<void> {
    const others = createSlices()
    await finishClaims()
    await quotaSweep.run(collections)
    rooms.presenceChanged()
    for (const { value: node } of nodes.each()) {
      await others()
      const isStray = ([uid, { namespace, name, slot }]: [string, NodeAllocation]): boolean => {
        if (slot) return false
        const record = vms.get(namespace, name)?.value
        return record?.uid !== uid || record.place?.node !== node.name || isFailedDeployment(record)
      }
      if (!Object.entries(node.allocations).some(isStray)) continue
      await changeNode(collections, node.name, (record) => ({
        ...record,
        allocations: Object.fromEntries(Object.entries(record.allocations).filter((each) => !isStray(each))),
      }))
    }
    for (const { key, value } of vms.each()) {
      await others()
      const isOnNoNode = !value.place || !nodes.get('', value.place.node)
      if (isDeleted(value) && isOnNoNode) await forgetVm(collections, key, value.uid)
    }
  }

  return {
    nudge: lookAgain,
    stop: async () => {
      clearTimeout(laterTimer)
      for (const unsubscribe of unsubscribes) unsubscribe()
      await loop.stop()
      sendBack()
      followed.stop()
    },
  }
}

type Bound = Pick<Chosen, 'vm' | 'slot' | 'unwritten'> & {
  readonly allocation: Pick<Allocation, 'ssh' | 'vnc' | 'screenshare' | 'memoryMiB'>
}

const ifWritten = (write: FirstWrite): Entry<VmRecord> | 'unknown' | undefined =>
  write === 'refused' ? undefined : write

/** A node that only got one more VM has no more capacity than before. */
function mayHaveMore(before: Entry<NodeRecord> | undefined, { value: after }: Entry<NodeRecord>): boolean {
  if (!before) return true
  const { allocations: had, ...old } = before.value
  const { allocations: has, ...now } = after
  const gone = Object.keys(had).filter((uid) => !has[uid])
  // What a VM took over is not free; a slot that has come up is there to be taken.
  const taken = gone.length > 0 ? new Set(Object.values(has).map(({ from }) => from)) : undefined
  if (gone.some((uid) => !taken?.has(uid))) return true
  if (slotsIn(after).some(([uid, { slot }]) => slot.readyAt !== had[uid]?.slot?.readyAt)) return true
  return JSON.stringify(old) !== JSON.stringify(now)
}

const needsUs = (record: VmRecord): boolean =>
  !isDeleted(record) && (!record.place || record.conditions.some(({ type }) => type === 'PortsFree'))

const withKept = (refusal: Refusal, node: string): Refusal => ({
  ...refusal,
  message: `${refusal.message}. Node ${node} is kept free for it`,
})

interface ShapedTurn extends Turn {
  readonly uid: string
  /** Equal for those that fit on the same nodes. */
  readonly shape: string
}

function turnOf({ key, value }: Pending): ShapedTurn {
  const { uid, namespace, owner, priority = 0, createdAt } = value
  const demand = demandOf(value)
  const shape = JSON.stringify([namespace, { ...demand, reservedPorts: [] }])
  return { key, uid, namespace, owner, priority, createdAt, amounts: leastAmounts(demand), demand, shape }
}

const reservation = (
  { namespace, name, reservedPorts }: VmRecord,
  allocation: Allocation,
  slot: Taken | undefined,
): NodeAllocation => {
  const { os, cpu, memoryMiB, gpus, ssh, vnc, screenshare } = allocation
  const ports = portsIn(allocation, reservedPorts)
  return {
    namespace,
    name,
    ...(os !== undefined && { os }),
    cpu,
    memoryMiB,
    gpus,
    ports,
    ...(slot && { from: slot.uid, claim: { pool: slot.pool, ssh, screenshare, ...(vnc !== undefined && { vnc }) } }),
  }
}
