// What is known of one VM and belongs on disk: as it is, as it may be told, and whether it was written.
import type { WantedVm } from '../../api/nodes/agent.ts'
import type { Handle } from '../../drivers/driver.ts'
import { originAfter, revisionOf, type Word } from '../link/authority.ts'
import { type Found, type Handles, rebased, type VmRecord, withoutSecrets } from './handles.ts'

export interface Texts {
  readonly problem?: string | undefined
  readonly warning?: string | undefined
}

export class RecordKeeper {
  readonly #handles: Handles
  readonly #handle: Handle
  readonly #isUnreadable: boolean
  #record: VmRecord | undefined
  #origin: VmRecord['origin']
  #isKept: boolean
  #isUnwritten = false
  #tellable: number | undefined

  constructor(handles: Handles, handle: Handle, found: Found['record'] | 'new') {
    this.#handles = handles
    this.#handle = handle
    this.#isUnreadable = found === 'unreadable'
    this.#record = typeof found === 'object' ? found : undefined
    this.#origin = this.#record?.origin
    this.#isKept = this.#record?.isKept ?? false
  }

  get record(): VmRecord | undefined {
    return this.#record
  }

  get origin(): VmRecord['origin'] {
    return this.#origin
  }

  get isKept(): boolean {
    return this.#isKept
  }

  get isUnwritten(): boolean {
    return this.#isUnwritten && this.#record !== undefined
  }

  /** The generation that may be told while a newer one must be written first. */
  get tellable(): number | undefined {
    return this.#tellable
  }

  /** Its server says what it wants. */
  wanted(wish: WantedVm, word: Word): void {
    const before = this.#origin
    this.#origin = originAfter(before, word, revisionOf(wish))
    // A higher revision alone is written with whatever comes of the wish.
    const isOther = before?.store !== this.#origin?.store || before?.node !== this.#origin?.node
    if (this.#isKept || isOther) this.#isUnwritten = true
    this.#isKept = false
  }

  keepForGood(): void {
    if (!this.#isKept) this.#isUnwritten = true
    this.#isKept = true
  }

  /** The record with this wish in it. */
  for(wanted: WantedVm): VmRecord {
    const wish = withoutSecrets(wanted)
    if (this.#record) return { ...this.#record, wish }
    // One whose record cannot be read has a disk that somebody may need: it counts as the one that is wanted.
    const diskGeneration = this.#isUnreadable ? wanted.diskGeneration : 0
    return { version: 1, handle: this.#handle, wish, fulfilled: 0, diskGeneration }
  }

  /** Work on it begins. */
  begin(wanted: WantedVm): void {
    this.#record = this.for(wanted)
  }

  /** Generations count anew. */
  rebase(wanted: WantedVm): void {
    this.#tellable = undefined
    if (!this.#record) return
    this.#record = rebased(this.#record, wanted)
    this.#isUnwritten = true
  }

  async change(wanted: WantedVm, change: Partial<VmRecord>): Promise<void> {
    this.#record = { ...this.for(wanted), ...change }
    this.#isUnwritten = true
    await this.write()
  }

  /** The wish is done with, well or not. To be written. */
  settle(wanted: WantedVm, { problem, warning }: Texts, mustWriteFirst: boolean): void {
    const { problem: _, warning: __, isGrowing: ___, ...rest } = this.for(wanted)
    if (mustWriteFirst) this.#tellable ??= rest.fulfilled
    this.#record = {
      ...rest,
      fulfilled: wanted.generation,
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
