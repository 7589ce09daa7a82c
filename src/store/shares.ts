// The number and size of the records of one kind that each namespace or caller has, and their limits. Requests run within
// `withLimits`, and the collections that they write to refuse a record that exceeds a limit before it is stored. Writes
// outside of requests, such as those of controllers, are never refused. Each process counts the records in its view and
// those that it is writing, so that only writes on several servers at once may exceed a limit by a few records.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Entry } from './store.ts'
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
  hasEnded: boolean
}

const current = new AsyncLocalStorage<LimitedWork>()

/** Refuses writes that exceed a limit until the work has ended. Later writes that it started are not refused. */
export async function withLimits<T>(limits: Omit<LimitedWork, 'hasEnded'>, work: () => Promise<T>): Promise<T> {
  const limited: LimitedWork = { ...limits, hasEnded: false }
  try {
    return await current.run(limited, work)
  } finally {
    limited.hasEnded = true
  }
}

/** Updates may exceed the limit of bytes by this fraction, so that the VMs of a full namespace can be stopped. */
const updateAllowance = 1 / 8

const none: Stored = { records: 0, bytes: 0 }

/** What each owner has of one kind, from the changes of its view. */
export class Shares<T> {
  readonly kind: string
  readonly ownerOf: (key: string, value: T) => string | undefined
  readonly #stored = new Map<string, Stored>()
  /** What requests are adding. */
  readonly #pending = new Map<string, Stored>()

  constructor(kind: string, view: View<T>, ownerOf: (key: string, value: T) => string | undefined) {
    this.kind = kind
    this.ownerOf = ownerOf
    const count = ({ key, value, bytes = 0 }: Entry<T>, sign: 1 | -1): void => {
      const owner = this.ownerOf(key, value)
      if (owner !== undefined) add(this.#stored, owner, { records: sign, bytes: sign * bytes })
    }
    view.subscribe((changes) => {
      for (const change of changes) {
        if (change.previous) count(change.previous, -1)
        if (change.type === 'put') count(change.entry, 1)
      }
    })
  }

  of(owner: string): Stored {
    return this.#stored.get(owner) ?? none
  }

  /**
   * Counts a write of the current request until the function that this returns is called. Throws the request's refusal if
   * the write exceeds a limit. `before` is the entry that is replaced.
   */
  reserve(key: string, value: T, before?: Entry<T>): () => void {
    const limited = current.getStore()
    const namespace = limited && !limited.hasEnded ? this.ownerOf(key, value) : undefined
    if (!limited || namespace === undefined) return () => {}
    const stored = sumOf(this.of(namespace), this.#pending.get(namespace) ?? none)
    const limits = limited.limitsOf(namespace)
    const requestedBytes = Buffer.byteLength(JSON.stringify(value)) - (before?.bytes ?? 0)
    const refusal = (exceeded: keyof Stored): Error =>
      limited.refusal({ kind: this.kind, namespace, exceeded, requestedBytes, limits, ...stored })
    if (!before && stored.records >= limits.records) throw refusal('records')
    const maxBytes = limits.bytes * (before ? 1 + updateAllowance : 1)
    if (requestedBytes > 0 && stored.bytes + requestedBytes > maxBytes) throw refusal('bytes')
    const [records, bytes] = [before ? 0 : 1, Math.max(0, requestedBytes)]
    add(this.#pending, namespace, { records, bytes })
    return () => add(this.#pending, namespace, { records: -records, bytes: -bytes })
  }
}

const sumOf = (a: Stored, b: Stored): Stored => ({ records: a.records + b.records, bytes: a.bytes + b.bytes })

function add(sums: Map<string, Stored>, owner: string, more: Stored): void {
  const sum = sumOf(sums.get(owner) ?? none, more)
  if (sum.records === 0 && sum.bytes === 0) sums.delete(owner)
  else sums.set(owner, sum)
}
