// VMs on their way in. Asked for on the server that leads, a VM gets its place before its record is first written: one write and
// one wait less. Asked for elsewhere, while others wait, or under a quota, it is written first, and placed when its turn comes.

import type { VmRecord } from '../../store/records/fleet-records.ts'
import { isRehearsal } from '../../store/rehearsal.ts'
import { type Entry, type Precondition, PreconditionFailed } from '../../store/store.ts'

/** How the first write of a VM ended; `unknown`: it may be there. */
type FirstWrite = Entry<VmRecord> | 'refused' | 'unknown'

/** What is to be written of a VM: with its place, or with the reason why it has none. */
interface Offer {
  readonly record: VmRecord
  /** To be written only while these are as they were looked at. */
  readonly preconditions: readonly Precondition[]
  /** To be called once. */
  ended(write: FirstWrite): void
}

/** Undefined: it is to be written as it is, and waits. */
type Take = (record: VmRecord) => Promise<Offer | undefined> | undefined

export class NewVms {
  #take: Take | undefined

  /** While a scheduler runs here. Returns how it leaves. */
  open(take: Take): () => void {
    this.#take = take
    return () => {
      if (this.#take === take) this.#take = undefined
    }
  }

  /** Writes a new VM by `write`, with its place where it can have one at once. `isRefusal`: surely not written. */
  async written(
    record: VmRecord,
    write: (record: VmRecord, preconditions: readonly Precondition[]) => Promise<Entry<VmRecord>>,
    isRefusal: (error: unknown) => boolean,
  ): Promise<Entry<VmRecord>> {
    const offer = isRehearsal() ? undefined : await this.#take?.(record)
    if (!offer) return write(record, [])
    try {
      const entry = await write(offer.record, offer.preconditions)
      offer.ended(entry)
      return entry
    } catch (error) {
      offer.ended(isRefusal(error) ? 'refused' : 'unknown')
      // Its place is gone: it waits for another.
      if (error instanceof PreconditionFailed && offer.preconditions.some(({ key }) => key === error.precondition.key))
        return write(record, [])
      throw error
    }
  }
}

/** One of them, as the scheduler has it. */
export class NewVm {
  readonly entry: Entry<VmRecord>
  readonly offer: Promise<Offer | undefined>
  readonly #answer: (offer: Offer | undefined) => void
  #isSentBack = false

  constructor(entry: Entry<VmRecord>) {
    this.entry = entry
    const { promise, resolve } = Promise.withResolvers<Offer | undefined>()
    this.offer = promise
    this.#answer = resolve
  }

  /** Resolves when it is written so, or not. */
  offered(record: VmRecord, preconditions: readonly Precondition[] = []): Promise<FirstWrite> {
    if (this.#isSentBack) return Promise.resolve('refused')
    return new Promise((ended) => this.#answer({ record, preconditions, ended }))
  }

  /** To be written as it is, unless it has an offer. */
  sentBack(): void {
    this.#isSentBack = true
    this.#answer(undefined)
  }
}
