// The VMs that wait for a node, or for other ports on theirs, and which of them the next run of the scheduler tries.
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { isDeleted } from '../../store/records/vms.ts'

export class PendingVms {
  readonly #waiting = new Set<string>()
  #due = new Set<string>()
  #areAllDue = false

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  get hasDue(): boolean {
    return this.#areAllDue || this.#due.size > 0
  }

  /** Takes note of a VM's record. Returns whether the VM waits no longer. */
  note(key: string, record: VmRecord | undefined): boolean {
    if (!record || !isPending(record)) {
      this.#due.delete(key)
      return this.#waiting.delete(key)
    }
    if (!this.#waiting.has(key) || record.place) this.#due.add(key)
    this.#waiting.add(key)
    return false
  }

  retry(key: string): void {
    if (this.#waiting.has(key)) this.#due.add(key)
  }

  /** Makes all waiting VMs due, because those that did not fit may fit now. */
  retryAll(): void {
    this.#areAllDue = !this.isEmpty
  }

  takeDue(): readonly string[] {
    const due = this.#areAllDue ? this.#waiting : this.#due
    this.#due = new Set()
    this.#areAllDue = false
    return [...due]
  }
}

const isPending = (record: VmRecord): boolean =>
  !isDeleted(record) && (!record.place || record.conditions.some(({ type }) => type === 'PortsFree'))
