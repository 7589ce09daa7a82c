// Keeps the record of one VM: its current value, the generation that may be reported, and whether it was written.
import type { DesiredVm } from '../../api/nodes/agent.ts'
import type { Handle } from '../../drivers/driver.ts'
import { type Claim, originAfter } from '../state/authority.ts'
import { type HandleLookup, type Handles, rebased, storedOf, type VmHandleRecord } from '../state/handles.ts'

export interface ReportTexts {
  readonly problem?: string | undefined
  readonly warning?: string | undefined
}

export class RecordKeeper {
  readonly #handles: Handles
  readonly #handle: Handle
  readonly #isUnreadable: boolean
  #record: VmHandleRecord | undefined
  #origin: VmHandleRecord['origin']
  #isKept: boolean
  #isUnwritten = false
  #reportable: number | undefined

  constructor(handles: Handles, handle: Handle, found: HandleLookup['record'] | 'new') {
    this.#handles = handles
    this.#handle = handle
    this.#isUnreadable = found === 'unreadable'
    this.#record = typeof found === 'object' ? found : undefined
    this.#origin = this.#record?.origin
    this.#isKept = this.#record?.isKept ?? false
  }

  get record(): VmHandleRecord | undefined {
    return this.#record
  }

  get origin(): VmHandleRecord['origin'] {
    return this.#origin
  }

  get isKept(): boolean {
    return this.#isKept
  }

  get isUnwritten(): boolean {
    return this.#isUnwritten && this.#record !== undefined
  }

  /** The generation to report until a newer one is written; undefined if the record's own may be reported. */
  get reportable(): number | undefined {
    return this.#reportable
  }

  setDesired(desired: DesiredVm, claim: Claim): void {
    const before = this.#origin
    this.#origin = originAfter(before, claim, desired.revision)
    // If only the revision is higher, it is written later, with the outcome of the desired state.
    const isMoved = before?.store !== this.#origin?.store || before?.node !== this.#origin?.node
    if (this.#isKept || isMoved) this.#isUnwritten = true
    this.#isKept = false
  }

  markKept(): void {
    if (!this.#isKept) this.#isUnwritten = true
    this.#isKept = true
  }

  for(vm: DesiredVm): VmHandleRecord {
    const desired = storedOf(vm)
    if (this.#record) return { ...this.#record, desired }
    // If the record is unreadable, the disk must not be replaced: it counts as the desired one.
    const diskGeneration = this.#isUnreadable ? vm.diskGeneration : 0
    return { version: 1, handle: this.#handle, desired, fulfilled: 0, diskGeneration }
  }

  begin(desired: DesiredVm): void {
    this.#record = this.for(desired)
  }

  /** Adapts the record to a server whose generations start over. */
  rebase(desired: DesiredVm): void {
    this.#reportable = undefined
    if (!this.#record) return
    this.#record = rebased(this.#record, desired)
    this.#isUnwritten = true
  }

  /**
   * Settles a generation that this node reported as carried out, if the agent was killed before it could write that.
   * The work is not repeated, because the VM may have changed since, such as by a shutdown in the guest.
   */
  confirm(desired: DesiredVm): void {
    const { fulfilled = 0, diskGeneration = 0 } = this.#record ?? {}
    const isReported = (desired.fulfilled ?? 0) >= desired.generation
    if (isReported && fulfilled < desired.generation && diskGeneration >= Math.max(1, desired.diskGeneration))
      this.settle(desired, {}, false)
  }

  handOver(vm: DesiredVm): void {
    this.#reportable = undefined
    if (!this.#record) return
    const { problem: _, warning: __, wasDeployed: ___, isClaimed: ____, ...rest } = this.#record
    this.#record = { ...rest, desired: storedOf(vm), fulfilled: 0 }
    this.#isUnwritten = true
  }

  async change(desired: DesiredVm, change: Partial<VmHandleRecord>): Promise<void> {
    this.#record = { ...this.for(desired), ...change }
    this.#isUnwritten = true
    await this.write()
  }

  /** Records that the image is complete. The caller wakes the VM, which writes the record in its next turn. */
  arrived(): void {
    if (!this.#record?.isArriving) return
    const { isArriving: _, ...rest } = this.#record
    this.#record = rest
    this.#isUnwritten = true
  }

  /** Records that the desired state was carried out or has failed. The caller writes the record. */
  settle(desired: DesiredVm, { problem, warning }: ReportTexts, mustWriteFirst: boolean): void {
    const { problem: _, warning: __, isGrowing: ___, ...rest } = this.for(desired)
    if (mustWriteFirst) this.#reportable ??= rest.fulfilled
    this.#record = {
      ...rest,
      fulfilled: desired.generation,
      ...(problem !== undefined && { problem }),
      ...(warning !== undefined && { warning }),
    }
    this.#isUnwritten = true
  }

  async write(): Promise<void> {
    if (!this.#isUnwritten || !this.#record) return
    this.#isUnwritten = false
    // The origin, and whether the VM is kept, may have changed since the record was made.
    const { isKept: _, origin: __, ...rest } = this.#record
    const marks = { ...(this.#origin && { origin: this.#origin }), ...(this.#isKept && { isKept: true as const }) }
    this.#record = { ...rest, ...marks }
    try {
      await this.#handles.write(this.#record)
    } catch (error) {
      this.#isUnwritten = true
      throw error
    }
    if (!this.#isUnwritten) this.#reportable = undefined
  }
}
