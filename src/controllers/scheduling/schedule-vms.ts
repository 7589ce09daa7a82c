// Places VMs: those that wait, and those that are about to be written. A VM gets its place in one write of its own record, which is
// refused if its node is not as it was looked at (placements.ts): no overcommit, whatever crashes. Runs on changes, without
// polling.
import { timestamp } from '../../platform/clock.ts'
import { createSlices } from '../../platform/event-loop.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { allEnded } from '../../platform/parallel.ts'
import { type Allocation, demandOf } from '../../rules/placement.ts'
import { isAboutCores, isAboutPorts, summaryOf } from '../../rules/placement-reasons.ts'
import type { Shares } from '../../rules/queue/queue.ts'
import { leastAmounts } from '../../rules/queue/quota.ts'
import { amountsOn, capacityIn } from '../../rules/queue/shares.ts'
import { Starvation, type Turn, Turns } from '../../rules/queue/turns.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { isFailedDeployment, isOnNode } from '../../store/records/node-vms.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { quotaOf, releaseQuota } from '../../store/records/quotas.ts'
import { changeVm, dropSlot, dropSlots, forgetVm, isDeleted, unplaced } from '../../store/records/vms.ts'
import { changeKey, type Entry } from '../../store/store.ts'
import type { Controller } from '../controller.ts'
import { Admission, mayAdmitMore, QuotaSweep } from './admission.ts'
import { newPorts, PortTurns } from './new-ports.ts'
import { OwnerUsage } from './owner-usage.ts'
import type { Placements } from './placements.ts'
import type { NodeRoom } from './rooms.ts'
import { placedBy, type TakenSlot, WarmSlots } from './warm-slots.ts'

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
  readonly slot?: TakenSlot | undefined
  readonly allocation: Allocation
}

export function scheduleVms(controller: Controller, placements: Placements): Loop {
  const { collections, clock, log } = controller
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
  const { rooms } = placements
  /** Made once for each that waits: what counts of it stays, and thousands may wait. */
  const turnsKnown = new Map<string, ShapedTurn>()
  const knownTurn = (vm: Pending): ShapedTurn => {
    const known = turnsKnown.get(vm.key)
    if (known?.uid === vm.value.uid) return known
    const turn = turnOf(vm)
    turnsKnown.set(vm.key, turn)
    return turn
  }
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
  for (const { key, value } of vms.each()) note(key, value)

  const loop = startLoop({
    everyMs: sweepMs,
    failed: (error) => {
      log.error('schedule-vms failed and will run again', {}, error)
      later()
    },
    run: async (signal) => {
      if (performance.now() - sweptMs >= sweepMs * 0.9) {
        sweptMs = performance.now()
        await placements.exclusively(sweep)
        shouldTryAll = true
      }
      if (!signal.aborted && (shouldTryAll || fresh.size > 0)) await placements.exclusively(placeAll)
    },
  })
  const unsubscribes = [
    vms.view.subscribe((changes) => {
      for (const change of changes) {
        const after = change.type === 'put' ? change.entry : undefined
        note(changeKey(change), after?.value)
        if (waiting.size > 0 && change.previous && isOnNode(change.previous.value) && !(after && isOnNode(after.value)))
          lookAgain()
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

  async function placeAll(): Promise<void> {
    if (shouldTryAll) for (const key of waiting) fresh.add(key)
    shouldTryAll = false
    if (fresh.size === 0) return
    const admission = new Admission(collections)
    const warm = new WarmSlots(collections, rooms)
    const chosen = new Map<NodeRoom, Chosen[]>()
    const unplaced: { vm: Pending; refusal: Refusal }[] = []
    /** What did not fit does not fit a second time in one run, whatever ports it wants besides. */
    const refused = new Map<string, Refusal>()
    const pending = [...fresh].flatMap((key) => vms.at(key) ?? [])
    fresh.clear()
    const toPlace = pending.filter(({ value }) => !value.place).map(knownTurn)
    const turns = new Turns(starvation, toPlace, { sharesOf, nowMs: clock.now().getTime() })
    const others = createSlices()
    for (let turn = turns.next(); turn; turn = turns.next()) {
      await others()
      const vm = vms.at(turn.key)
      if (!vm || vm.value.place) continue
      const { demand, shape } = turn
      const overQuota = admission.refusal(vm.value, turn.amounts)
      if (overQuota !== undefined) {
        unplaced.push({ vm, refusal: { message: overQuota, reason: 'OverQuota' } })
        continue
      }
      const slot = warm.take(vm.value)
      const candidates = rooms.in(vm.value.namespace)
      const known = refused.get(shape)
      const found = slot ? placedBy(slot) : known === undefined ? rooms.place(demand, turn.namespace) : undefined
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
      const one = { vm, allocation, slot }
      if (already) already.push(one)
      else chosen.set(room, [one])
    }
    const nowMs = performance.now()
    const taken = pending.filter(({ value }) => value.place)
    const inTurn = taken.filter(({ key }) => portTurns.take(key, nowMs))
    if (inTurn.length < taken.length) later()
    // All of it, whatever fails: what is written after the next run has looked would not be seen by it.
    await allEnded([
      ...[...chosen].map(([room, list]) => settle(room, list, admission, warm)),
      ...unplaced.map(({ vm, refusal }) => explain(vm, refusal)),
      ...inTurn.map(otherPorts),
    ])
    await warm.count()
  }

  function* nodeRecords(): Iterable<NodeRecord> {
    for (const { value } of nodes.each()) yield value
  }

  const sharesOf = (namespace: string): Shares => ({
    usage: usage.in(namespace),
    weights: quotaOf(collections, namespace)?.value.weights ?? {},
    total: capacityIn(namespace, nodeRecords()),
  })

  /** All of a node at once. Who was too late, because the node changed meanwhile, is tried again. */
  async function settle(
    { entry }: NodeRoom,
    all: readonly Chosen[],
    admission: Admission,
    warm: WarmSlots,
  ): Promise<void> {
    const refused = await admission.refused(entry.value.namespace)
    const list = refused ? all.filter(({ vm }) => !refused.has(vm.value.uid)) : all
    if (list.length < all.length) lookAgain()
    const taken: string[] = []
    await allEnded(
      list.map(async (one) => {
        const { vm, slot } = one
        const placed = await bind(one, entry)
        failpoint('schedule.placed')
        if (placed === 'moved') tryAgain(vm)
        else if (placed?.value.place?.node === entry.value.name) {
          if (slot) taken.push(slot.uid)
          warm.placed(placed.value, slot)
        } else if (!placed) await releaseQuota(collections, vm.value.namespace, vm.value.uid)
      }),
    )
    // After all of them: each was given the record as it was.
    if (taken.length > 0) await dropSlots(collections, entry.value.name, taken)
  }

  async function otherPorts(vm: Pending): Promise<void> {
    if ((await newPorts(controller, vm, placements)) === 'moved') tryAgain(vm)
  }

  const tryAgain = ({ key }: Pending): void => {
    if (waiting.has(key)) fresh.add(key)
    loop.nudge()
  }

  /** Undefined: there is no such VM. `moved`: the node is not as it was. */
  function bind(
    { vm, allocation, slot }: Chosen,
    node: Entry<NodeRecord>,
  ): Promise<Entry<VmRecord> | 'moved' | undefined> {
    return placements.changeVm(vm, node, (record) =>
      record.place || isDeleted(record) ? undefined : placedOn(node.value, record, allocation, slot),
    )
  }

  function placedOn(
    { name: node, report }: NodeRecord,
    record: VmRecord,
    { ssh, vnc, screenshare, memoryMiB }: Allocation,
    slot: TakenSlot | undefined,
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

  async function explain({ key, value }: Pending, refusal: Refusal): Promise<void> {
    const nowMs = performance.now()
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

  /** Finishes what a crash left: VMs to be deleted, or that never ran, on no node, and slots that VMs have taken. */
  async function sweep(): Promise<void> {
    const others = createSlices()
    await quotaSweep.run(collections)
    rooms.presenceChanged()
    for (const { key, value } of vms.each()) {
      await others()
      if (value.place && nodes.get('', value.place.node)) await dropSlot(collections, value)
      else if (isDeleted(value)) await forgetVm(collections, key, value.uid)
      else if (value.place)
        await changeVm(collections, key, value.uid, (record) =>
          record.observed.hasRun || isFailedDeployment(record) || !record.place || nodes.get('', record.place.node)
            ? undefined
            : unplaced(record),
        )
    }
  }

  return {
    nudge: lookAgain,
    stop: async () => {
      clearTimeout(laterTimer)
      for (const unsubscribe of unsubscribes) unsubscribe()
      await loop.stop()
    },
  }
}

/** A node that only got more slots, or changed who has one, has no more capacity than before. */
function mayHaveMore(before: Entry<NodeRecord> | undefined, { value: after }: Entry<NodeRecord>): boolean {
  if (!before) return true
  const { slots: had = {}, ...old } = before.value
  const { slots: has = {}, ...now } = after
  // One that a VM has taken is not free; a slot that has come up is there to be taken.
  if (slotsIn(before.value).some(([uid, { slot }]) => slot.leaving && !has[uid])) return true
  if (slotsIn(after).some(([uid, { slot }]) => slot.readyAt !== had[uid]?.slot.readyAt)) return true
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
