// The number and size of the records of one kind that each namespace or caller has, and their limits. Requests run within
// `withLimits`, and the collections that they write to refuse a record that exceeds a limit before it is stored. Writes
// outside of requests, such as those of controllers, are never refused. Each process counts the records in its view, so
// that concurrent writes may exceed a limit by a few records.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Entry, maxValueBytes } from './store.ts'
import type { View } from './view.ts'

/** The number of records, and their size together. */
export interface Stored {
  readonly records: number
  readonly bytes: number
}

export interface OverLimit extends Stored {
  /** The collection. */
  readonly kind: string
  readonly namespace: string
  readonly exceeded: keyof Stored
  readonly requestedBytes: number
  readonly limits: Stored
}

interface LimitedWork {
  readonly limitsOf: (namespace: string) => Stored
  readonly refusal: (excess: OverLimit) => Error
  isOver: boolean
}

const current = new AsyncLocalStorage<LimitedWork>()

/** Refuses writes that exceed a limit until the work has ended. Later writes that it started are not refused. */
export async function withLimits<T>(limits: Omit<LimitedWork, 'isOver'>, work: () => Promise<T>): Promise<T> {
  const limited: LimitedWork = { ...limits, isOver: false }
  try {
    return await current.run(limited, work)
  } finally {
    limited.isOver = true
  }
}

/** Changes may exceed the limit of bytes by this fraction, so that the VMs of a full namespace can be stopped. */
const changesExtra = 1 / 8

const nothing: Stored = { records: 0, bytes: 0 }

/** The sums of one kind, kept while its view changes. */
export class Shares<T> {
  readonly kind: string
  readonly ownerOf: (key: string, value: T) => string | undefined
  readonly #sums = new Map<string, Stored>()

  constructor(kind: string, view: View<T>, ownerOf: (key: string, value: T) => string | undefined) {
    this.kind = kind
    this.ownerOf = ownerOf
    view.subscribe((changes) => {
      for (const change of changes) {
        if (change.previous) this.#add(change.previous, -1)
        if (change.type === 'put') this.#add(change.entry, 1)
      }
    })
  }

  of(owner: string): Stored {
    return this.#sums.get(owner) ?? nothing
  }

  #add({ key, value, bytes = 0 }: Entry<T>, sign: 1 | -1): void {
    const owner = this.ownerOf(key, value)
    if (owner === undefined) return
    const before = this.of(owner)
    const sum = { records: before.records + sign, bytes: before.bytes + sign * bytes }
    if (sum.records === 0) this.#sums.delete(owner)
    else this.#sums.set(owner, sum)
  }

  /** Throws the refusal of the current request if it may not write this. `before` is the entry that is replaced. */
  assertWithinLimits(key: string, value: T, before?: Entry<T>): void {
    const limited = current.getStore()
    const namespace = limited && !limited.isOver ? this.ownerOf(key, value) : undefined
    if (!limited || namespace === undefined) return
    const stored = this.of(namespace)
    const limits = limited.limitsOf(namespace)
    const refusal = (exceeded: keyof Stored, requestedBytes = 0): Error =>
      limited.refusal({ kind: this.kind, namespace, exceeded, requestedBytes, limits, ...stored })
    if (!before && stored.records >= limits.records) throw refusal('records')
    const mostBytes = limits.bytes * (before ? 1 + changesExtra : 1)
    // Values are measured only near the limit.
    if (stored.bytes + maxValueBytes <= mostBytes) return
    const added = Buffer.byteLength(JSON.stringify(value)) - (before?.bytes ?? 0)
    if (added > 0 && stored.bytes + added > mostBytes) throw refusal('bytes', added)
  }
}
