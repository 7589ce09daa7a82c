// Writes into the records of VMs why they have no node: the first reason at once, later ones at most every two seconds.
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { changeVm, isDeleted } from '../../store/records/vms.ts'
import type { PendingVm, PlacementRefusal } from './decide.ts'

export const reasonsMs = 2_000

export class WaitReasons {
  readonly #vms: Collections['vms']
  readonly #clock: Clock
  readonly #writtenMs = new Map<string, number>()

  constructor({ vms }: Pick<Collections, 'vms'>, clock: Clock) {
    this.#vms = vms
    this.#clock = clock
  }

  /** Returns false if it is too early to write another reason. */
  async write({ key, value }: PendingVm, refusal: PlacementRefusal): Promise<boolean> {
    if (value.conditions.find(({ type }) => type === 'Scheduled')?.message === refusal.message) return true
    const nowMs = performance.now()
    if (nowMs - (this.#writtenMs.get(key) ?? Number.NEGATIVE_INFINITY) < reasonsMs) return false
    this.#writtenMs.set(key, nowMs)
    await changeVm({ vms: this.#vms }, key, value.uid, (record) =>
      record.place || isDeleted(record)
        ? undefined
        : { ...record, conditions: withScheduled(record, this.#clock, 'False', refusal) },
    )
    return true
  }

  forget(key: string): void {
    this.#writtenMs.delete(key)
  }
}

export function withScheduled(
  record: VmRecord,
  clock: Clock,
  status: 'True' | 'False',
  why: { readonly reason: string; readonly message: string },
): VmRecord['conditions'] {
  const condition = { type: 'Scheduled', status, ...why, at: timestamp(clock.now()) } as const
  return [...record.conditions.filter(({ type }) => type !== 'Scheduled'), condition]
}
