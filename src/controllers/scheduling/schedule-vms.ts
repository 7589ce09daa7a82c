// Places VMs that wait for a node. Runs when VMs, nodes or quotas change. The README says what it promises.
import { createSlices } from '../../platform/event-loop.ts'
import { failpoint } from '../../platform/failpoint.ts'
import type { Loop } from '../../platform/loop.ts'
import { allEnded } from '../../platform/parallel.ts'
import type { Shares } from '../../rules/queue/queue.ts'
import { capacityIn, usageByOwner } from '../../rules/queue/shares.ts'
import { Starvation, Turns } from '../../rules/queue/turns.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { isFailedDeployment, isOnNode } from '../../store/records/node-vms.ts'
import { slotsIn } from '../../store/records/pools.ts'
import { quotaOf, releaseQuota } from '../../store/records/quotas.ts'
import { changeVm, dropSlot, dropSlots, forgetVm, holdsQuota, isDeleted, unplaced } from '../../store/records/vms.ts'
import { changeKey, type Entry } from '../../store/store.ts'
import { type Controller, startController } from '../controller.ts'
import { mayAdmitMore, QuotaAdmission, QuotaSweep } from './admission.ts'
import { type ChosenVm, decide, type PendingVm, turnOf, type VmTurn } from './decide.ts'
import { newPorts, PortTurns } from './new-ports.ts'
import { PendingVms } from './pending-vms.ts'
import type { Placements } from './placements.ts'
import type { NodeRoom } from './rooms.ts'
import { reasonsMs, WaitReasons, withScheduled } from './wait-reasons.ts'
import { WarmSlots } from './warm-slots.ts'

const sweepMs = 30_000

export function scheduleVms(controller: Controller, placements: Placements): Loop {
  const scheduler = new Scheduler(controller, placements)
  const loop = startController(controller, 'schedule-vms', {
    everyMs: sweepMs,
    run: (signal) => scheduler.run(signal),
    follow: ({ nudge }) => scheduler.follow(nudge),
  })
  return { ...loop, nudge: () => scheduler.retryAll() }
}

class Scheduler {
  readonly #controller: Controller
  readonly #placements: Placements
  readonly #pending = new PendingVms()
  readonly #reasons: WaitReasons
  readonly #portTurns = new PortTurns()
  readonly #starvation = new Starvation<VmTurn>()
  readonly #quotaSweep = new QuotaSweep()
  #nudge: () => void = () => undefined
  #sweptMs = Number.NEGATIVE_INFINITY
  #laterTimer: NodeJS.Timeout | undefined

  constructor(controller: Controller, placements: Placements) {
    const { collections, clock } = controller
    this.#controller = controller
    this.#placements = placements
    this.#reasons = new WaitReasons(collections, clock)
    for (const { key, value } of collections.vms.each()) this.#note(key, value)
  }

  follow(nudge: () => void): readonly (() => void)[] {
    this.#nudge = nudge
    const { vms, nodes, quotas } = this.#controller.collections
    return [
      vms.view.subscribe((changes) => {
        for (const change of changes) {
          const after = change.type === 'put' ? change.entry.value : undefined
          this.#note(changeKey(change), after)
          if (change.previous && isOnNode(change.previous.value) && !(after && isOnNode(after))) this.retryAll()
        }
        if (this.#pending.hasDue) nudge()
      }),
      nodes.view.subscribe((changes) => {
        if (this.#pending.isEmpty) return
        if (changes.some((change) => change.type === 'delete' || mayHaveMore(change.previous, change.entry)))
          this.retryAll()
      }),
      quotas.view.subscribe((changes) => {
        if (changes.some((change) => mayAdmitMore(change.previous, change.type === 'put' ? change.entry : undefined)))
          this.retryAll()
      }),
      () => clearTimeout(this.#laterTimer),
    ]
  }

  /** Tries all waiting VMs, because those that did not fit may fit now. */
  retryAll(): void {
    this.#pending.retryAll()
    if (this.#pending.hasDue) this.#nudge()
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      if (performance.now() - this.#sweptMs >= sweepMs * 0.9) {
        this.#sweptMs = performance.now()
        await this.#placements.exclusively(() => this.#sweep())
        this.#pending.retryAll()
      }
      if (!signal.aborted && this.#pending.hasDue) await this.#placements.exclusively(() => this.#placeDue())
    } catch (error) {
      this.#retryLater()
      throw error
    }
  }

  #note(key: string, record: VmRecord | undefined): void {
    if (record?.observed.power !== 'starting' && record?.observed.power !== 'pending') this.#portTurns.forget(key)
    if (!this.#pending.note(key, record)) return
    this.#reasons.forget(key)
    if (this.#starvation.forget(key)) this.retryAll()
  }

  #retry({ key }: PendingVm): void {
    this.#pending.retry(key)
    this.#nudge()
  }

  #retryLater(): void {
    this.#laterTimer ??= setTimeout(() => {
      this.#laterTimer = undefined
      this.retryAll()
    }, reasonsMs).unref()
  }

  async #placeDue(): Promise<void> {
    const { collections, clock } = this.#controller
    const { rooms } = this.#placements
    const due = this.#pending.takeDue().flatMap((key) => collections.vms.at(key) ?? [])
    const admission = new QuotaAdmission(collections)
    const warm = new WarmSlots(collections, rooms)
    const turns = new Turns(this.#starvation, due.filter(({ value }) => !value.place).map(turnOf), {
      sharesOf: (namespace) => this.#sharesOf(namespace),
      nowMs: clock.now().getTime(),
    })
    const { chosen, refused } = await decide({ vms: collections.vms, rooms, turns, admission, warm })
    const nowMs = performance.now()
    const withTakenPorts = due.filter(({ value }) => value.place)
    const inTurn = withTakenPorts.filter(({ key }) => this.#portTurns.take(key, nowMs))
    if (inTurn.length < withTakenPorts.length) this.#retryLater()
    // The next run must see every write of this one, so all of them are awaited even when one fails.
    await allEnded([
      ...[...chosen].map(([room, list]) => this.#writePlacements(room, list, admission, warm)),
      ...refused.map(async ({ vm, refusal }) => {
        if (!(await this.#reasons.write(vm, refusal))) this.#retryLater()
      }),
      ...inTurn.map(async (vm) => {
        if ((await newPorts(this.#controller, vm, this.#placements)) === 'moved') this.#retry(vm)
      }),
    ])
    await warm.count()
  }

  #sharesOf(namespace: string): Shares {
    const { collections } = this.#controller
    return {
      // VMs that are being deleted do not count: the VMs that get their room may be chosen before they are deleted.
      usage: usageByOwner(
        collections.vms.list(namespace).flatMap(({ value }) => (holdsQuota(value) && !isDeleted(value) ? value : [])),
        (name) => collections.nodes.get('', name)?.value,
      ),
      weights: quotaOf(collections, namespace)?.value.weights ?? {},
      total: capacityIn(namespace, valuesOf(collections.nodes.each())),
    }
  }

  /** Writes all placements on one node. VMs whose write is refused because the node changed are tried again. */
  async #writePlacements(
    { entry }: NodeRoom,
    all: readonly ChosenVm[],
    admission: QuotaAdmission,
    warm: WarmSlots,
  ): Promise<void> {
    const { collections } = this.#controller
    const refused = await admission.refused(entry.value.namespace)
    const admitted = refused ? all.filter(({ vm }) => !refused.has(vm.value.uid)) : all
    if (admitted.length < all.length) this.retryAll()
    const takenSlots: string[] = []
    await allEnded(
      admitted.map(async (one) => {
        const { vm, slot } = one
        const placed = await this.#placements.changeVm(vm, entry, (record) =>
          record.place || isDeleted(record) ? undefined : this.#placed(record, entry.value, one),
        )
        failpoint('schedule.placed')
        if (placed === 'moved') this.#retry(vm)
        else if (placed?.value.place?.node === entry.value.name) {
          if (slot) takenSlots.push(slot.uid)
          warm.placed(placed.value, slot)
        } else if (!placed) await releaseQuota(collections, vm.value.namespace, vm.value.uid)
      }),
    )
    // The slots are dropped last, because placements are refused once the node's record has changed.
    if (takenSlots.length > 0) await dropSlots(collections, entry.value.name, takenSlots)
  }

  #placed(record: VmRecord, { name: node, report }: NodeRecord, { allocation, slot }: ChosenVm): VmRecord {
    const { clock } = this.#controller
    const { ssh, vnc, screenshare, memoryMiB } = allocation
    const place = { node, ip: report?.ip ?? '', memoryMiB, ssh, screenshare, ...(vnc !== undefined && { vnc }) }
    return {
      ...record,
      place: slot ? { ...place, slot: slot.uid } : place,
      ...(slot && { warm: slot.pool }),
      ...(record.times && { times: { ...record.times, placedMs: clock.now().getTime() } }),
      conditions: withScheduled(record, clock, 'True', { reason: 'Placed', message: `Placed on ${node}` }),
    }
  }

  /** Finishes what a crash left: deleted VMs, VMs that never ran on a removed node, and slots that VMs have taken. */
  async #sweep(): Promise<void> {
    const { collections } = this.#controller
    const { vms, nodes } = collections
    const yieldToOthers = createSlices()
    await this.#quotaSweep.run(collections)
    this.#placements.rooms.presenceChanged()
    for (const { key, value } of vms.each()) {
      await yieldToOthers()
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
}

function* valuesOf<T>(entries: Iterable<Entry<T>>): Iterable<T> {
  for (const { value } of entries) yield value
}

/** Whether a node may have more free capacity. New slots, and slots that VMs have taken, free nothing. */
function mayHaveMore(before: Entry<NodeRecord> | undefined, { value: after }: Entry<NodeRecord>): boolean {
  if (!before) return true
  const { slots: had = {}, ...old } = before.value
  const { slots: has = {}, ...now } = after
  if (slotsIn(before.value).some(([uid, { slot }]) => slot.leaving && !has[uid])) return true
  if (slotsIn(after).some(([uid, { slot }]) => slot.readyAt !== had[uid]?.slot.readyAt)) return true
  return JSON.stringify(old) !== JSON.stringify(now)
}
