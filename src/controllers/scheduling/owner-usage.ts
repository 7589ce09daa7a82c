// What the VMs of each owner use, kept current change by change, so that a placement need not count all VMs.
import { nothing, plus, type Totals } from '../../rules/queue/quota.ts'
import { amountsOf } from '../../rules/queue/shares.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { holdsQuota, isDeleted } from '../../store/records/vms.ts'

interface Held {
  readonly namespace: string
  readonly owner: string
  readonly amounts: Omit<Totals, 'vms'>
}

export class OwnerUsage {
  readonly #nodes: Collections['nodes']
  readonly #held = new Map<string, Held>()
  readonly #usage = new Map<string, Map<string, Totals>>()

  constructor({ nodes }: Pick<Collections, 'nodes'>) {
    this.#nodes = nodes
  }

  /** Takes note of a VM's record, or of its deletion. */
  note(key: string, record: VmRecord | undefined): void {
    // A VM that is being deleted does not count, because its successor is chosen before its record is deleted.
    const amounts =
      record && holdsQuota(record) && !isDeleted(record)
        ? amountsOf(record, (name) => this.#nodes.get('', name)?.value)
        : undefined
    const before = this.#held.get(key)
    if (before) {
      const { cpu, memoryMiB, macos } = before.amounts
      this.#add(before, { vms: -2, cpu: -cpu, memoryMiB: -memoryMiB, macos: -macos })
      this.#held.delete(key)
    }
    if (!record || !amounts) return
    const held = { namespace: record.namespace, owner: record.owner, amounts }
    this.#held.set(key, held)
    this.#add(held, { vms: 0, ...amounts })
  }

  in(namespace: string): ReadonlyMap<string, Totals> {
    return this.#usage.get(namespace) ?? new Map()
  }

  #add({ namespace, owner }: Held, { vms, ...amounts }: Totals): void {
    const usage = this.#usage.get(namespace) ?? new Map<string, Totals>()
    this.#usage.set(namespace, usage)
    const sum = plus(usage.get(owner) ?? nothing, amounts)
    const next = { ...sum, vms: sum.vms + vms }
    if (next.vms > 0) usage.set(owner, next)
    else usage.delete(owner)
  }
}
