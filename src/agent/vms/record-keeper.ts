// What is known of one VM and belongs on disk: as it is, as it may be reported, and whether it was written.
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
  /** Made once of a desired state: every step asks for it. */
  #stored: { readonly of: DesiredVm; readonly value: VmHandleRecord['desired'] } | undefined
  #record: VmHandleRecord | undefined
  #origin: VmHandleRecord['origin']
  #isKept: boolean
  #isUnwritten = false
  #tellable: number | undefined

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

  /** The generation that may be reported while a newer one must be written first. */
  get tellable(): number | undefined {
    return this.#tellable
  }

  /** A desired state came from its server. */
  setDesired(desired: DesiredVm, claim: Claim): void {
    const before = this.#origin
    this.#origin = originAfter(before, claim, desired.revision)
    // A higher revision alone is written with whatever comes of the desired state.
    const isOther = before?.store !== this.#origin?.store || before?.node !== this.#origin?.node
    if (this.#isKept || isOther) this.#isUnwritten = true
    this.#isKept = false
  }

  keepForGood(): void {
    if (!this.#isKept) this.#isUnwritten = true
    this.#isKept = true
  }

  /** The record with this generation in it. */
  for(vm: DesiredVm): VmHandleRecord {
    if (this.#stored?.of !== vm) this.#stored = { of: vm, value: storedOf(vm) }
    const { value: desired } = this.#stored
    if (this.#record) return this.#record.desired === desired ? this.#record : { ...this.#record, desired }
    // One whose record cannot be read has a disk that somebody may need: it counts as the desired one.
    const diskGeneration = this.#isUnreadable ? vm.diskGeneration : 0
    return { version: 1, handle: this.#handle, desired, fulfilled: 0, diskGeneration }
  }

  /** Work on it begins. */
  begin(desired: DesiredVm): void {
    this.#record = this.for(desired)
  }

  /** Generations count anew. */
  rebase(desired: DesiredVm): void {
    this.#tellable = undefined
    if (!this.#record) return
    this.#record = rebased(this.#record, desired)
    this.#isUnwritten = true
  }

  /**
   * The server knows from this node that the generation was carried out, and the agent that said so was killed before it
   * could write that down. It is not done again: what became of the VM since was not asked for.
   */
  confirm(desired: DesiredVm): void {
    const { fulfilled = 0, diskGeneration = 0 } = this.#record ?? {}
    const isTold = (desired.fulfilled ?? 0) >= desired.generation
    if (isTold && fulfilled < desired.generation && diskGeneration >= Math.max(1, desired.diskGeneration))
      this.settle(desired, {}, false)
  }

  /** What waited in a pool is this VM from now on, once the claim is carried out. */
  handOver(vm: DesiredVm): void {
    this.#tellable = undefined
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

  /** It reads from an image that is whole. */
  async arrived(): Promise<void> {
    if (!this.#record?.isArriving) return
    const { isArriving: _, ...rest } = this.#record
    this.#record = rest
    this.#isUnwritten = true
    await this.write()
  }

  /** The desired state is done with, well or not. To be written. */
  settle(desired: DesiredVm, { problem, warning }: ReportTexts, mustWriteFirst: boolean): void {
    const { problem: _, warning: __, isGrowing: ___, ...rest } = this.for(desired)
    if (mustWriteFirst) this.#tellable ??= rest.fulfilled
    this.#record = {
      ...rest,
      fulfilled: desired.generation,
      ...(problem !== undefined && { problem }),
      ...(warning !== undefined && { warning }),
    }
    this.#isUnwritten = true
  }

  /** Does nothing when all is written; where it fails, it stays to be done. */
  async write(): Promise<void> {
    if (!this.#isUnwritten || !this.#record) return
    this.#isUnwritten = false
    // Whom it belongs to may have changed while it was worked on.
    const { isKept: _, origin: __, ...rest } = this.#record
    const marks = { ...(this.#origin && { origin: this.#origin }), ...(this.#isKept && { isKept: true as const }) }
    this.#record = { ...rest, ...marks }
    try {
      await this.#handles.write(this.#record)
    } catch (error) {
      this.#isUnwritten = true
      throw error
    }
    if (!this.#isUnwritten) this.#tellable = undefined
  }
}
