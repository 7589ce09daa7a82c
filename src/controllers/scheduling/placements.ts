// Serialises everything that takes resources of nodes. Free resources follow from the records of VMs and nothing is
// reserved, so each run must see all writes of the previous one. Every write depends on the node's record being
// unchanged, and on the term: a record that each leader writes before its first placement, so that writes of earlier
// leaders are refused.

import { caughtUp } from '../../store/records/caught-up.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import {
  type Entry,
  ignoreLost,
  isFault,
  type Precondition,
  PreconditionFailed,
  type Store,
} from '../../store/store.ts'
import type { Presence } from '../controller.ts'
import { followRooms, type Rooms } from './rooms.ts'

interface PlacementServices {
  readonly collections: Collections
  readonly store: Pick<Store, 'get' | 'create' | 'update' | 'reached'>
}

interface TermRecord {
  /** Greater than that of every earlier leader; 0 with one server. */
  readonly term: number
  /** Incremented to change the record. */
  readonly count: number
}

const termKey = '/leadership/placements'
const timeoutMs = 10_000

export class Placements {
  readonly rooms: Rooms
  readonly stop: () => void
  readonly #collections: Collections
  readonly #store: PlacementServices['store']
  readonly #term: number
  #begun: Precondition | undefined
  #isUnsure = false
  #last: Promise<unknown> = Promise.resolve()

  constructor({ collections, store }: PlacementServices, presence: Presence, term = 0) {
    this.#collections = collections
    this.#store = store
    this.#term = term
    const { rooms, stop } = followRooms(collections, presence)
    this.rooms = rooms
    this.stop = stop
  }

  /** Runs one `work` after the other, and none once another server leads. */
  async exclusively(work: () => Promise<void>): Promise<void> {
    const run = this.#last.then(async () => {
      if (!this.#begun || this.#isUnsure) this.#begun = await this.#begin()
      if (!this.#begun) return
      this.#isUnsure = false
      this.rooms.look()
      await work().catch((error: unknown) => {
        this.unsure()
        throw error
      })
    })
    this.#last = run.catch(() => undefined)
    return run
  }

  /**
   * Call this if the outcome of a placement is unknown. The next run writes the term again, after which the placement
   * is either seen or can no longer happen.
   */
  unsure(): void {
    this.#isUnsure = true
  }

  /** The precondition, beside the node itself, of every write that takes resources of a node. */
  get term(): Precondition {
    if (!this.#begun) throw new Error('A placement outside of its turn')
    return this.#begun
  }

  /**
   * As `changeVm`, for a write that takes resources of a node. Returns `moved` if the node's record has changed or
   * another server leads.
   */
  async changeVm(
    { key, value: { uid } }: Entry<VmRecord>,
    node: Entry<NodeRecord>,
    change: (record: VmRecord) => VmRecord | undefined,
  ): Promise<Entry<VmRecord> | 'moved' | undefined> {
    const { vms, nodes } = this.#collections
    const preconditions = [this.term, node]
    for (;;) {
      const entry = vms.at(key)
      if (entry?.value.uid !== uid) return undefined
      const value = change(entry.value)
      if (!value) return entry
      try {
        return await vms.update(entry, value, preconditions)
      } catch (error) {
        ignoreLost(error)
        if (!(error instanceof PreconditionFailed)) continue
        if (error.precondition.key === termKey) this.unsure()
        else await nodes.moved(node)
        return 'moved'
      }
    }
  }

  /** Returns undefined if a later leader has begun. */
  async #begin(): Promise<Precondition | undefined> {
    const { vms, nodes } = this.#collections
    for (;;) {
      const found = await this.#store.get(termKey)
      const before = found?.value as unknown as TermRecord | undefined
      if (before && before.term > this.#term) return undefined
      const record = { term: this.#term, count: (before?.count ?? 0) + 1 }
      try {
        const begun = await (found
          ? this.#store.update(termKey, record, found.rev)
          : this.#store.create(termKey, record))
        await caughtUp(this.#store, [vms.view, nodes.view], begun.rev, AbortSignal.timeout(timeoutMs))
        return begun
      } catch (error) {
        if (!isFault(error, 'Conflict') && !isFault(error, 'AlreadyExists')) throw error
      }
    }
  }
}
