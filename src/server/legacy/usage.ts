// Counts 2.4.x calls by path, subject and client. Counts are added to shared records in batches; a crash loses the last
// batch.
import { createHash } from 'node:crypto'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collections, LegacyUsageRecord } from '../../store/records/collections.ts'
import { ignoreLost } from '../../store/store.ts'

interface LegacyRequest {
  readonly endpoint: string
  readonly subject: string
  readonly client: string
  readonly isRefused: boolean
}

/** Clients choose their User-Agent, so further combinations are counted together. */
const maxRecords = 5_000
const others = '(others)'
const maxClientLength = 120
const keptMs = 180 * 86_400_000

export class LegacyUsageCounter {
  readonly #collections: Pick<Collections, 'legacyUsage'>
  readonly #clock: Clock
  #added = new Map<string, LegacyUsageRecord>()
  #flushing: Promise<void> = Promise.resolve()

  constructor(collections: Pick<Collections, 'legacyUsage'>, clock: Clock) {
    this.#collections = collections
    this.#clock = clock
  }

  count({ endpoint, subject, client, isRefused }: LegacyRequest): void {
    const at = timestamp(this.#clock.now())
    const who = { endpoint, subject, client: client.slice(0, maxClientLength) }
    const isNew = !this.#added.has(nameOf(who)) && !this.#collections.legacyUsage.get('', nameOf(who))
    const isFull = this.#added.size + this.#collections.legacyUsage.view.size >= maxRecords
    const known = isNew && isFull ? { endpoint, subject: others, client: others } : who
    const once = { ...known, calls: 1, refused: isRefused ? 1 : 0, firstAt: at, lastAt: at }
    this.#added.set(nameOf(known), sum(this.#added.get(nameOf(known)), once))
  }

  /** Writes one batch at a time. Counts that cannot be written are added to the next batch. */
  flush(): Promise<void> {
    const next = this.#flushing.then(() => this.#write())
    this.#flushing = next.catch(() => undefined)
    return next
  }

  async #write(): Promise<void> {
    const { legacyUsage } = this.#collections
    const batch = this.#added
    this.#added = new Map()
    try {
      for (const [name, added] of batch) {
        await legacyUsage.change(legacyUsage.key('', name), (before) => sum(before, added))
        batch.delete(name)
      }
    } finally {
      for (const [name, left] of batch) this.#added.set(name, sum(this.#added.get(name), left))
    }
    await this.#deleteOld()
  }

  async #deleteOld(): Promise<void> {
    const oldest = timestamp(new Date(this.#clock.now().getTime() - keptMs))
    for (const entry of this.#collections.legacyUsage.list()) {
      if (entry.value.lastAt >= oldest) continue
      await this.#collections.legacyUsage.delete(entry).catch(ignoreLost)
    }
  }

  /** Returns the written counts, the most frequent first. */
  items(): LegacyUsageRecord[] {
    const records = this.#collections.legacyUsage.list().map(({ value }) => value)
    return records.toSorted((a, b) => b.calls - a.calls || (a.endpoint < b.endpoint ? -1 : 1))
  }
}

const nameOf = ({ endpoint, subject, client }: Pick<LegacyUsageRecord, 'endpoint' | 'subject' | 'client'>): string =>
  createHash('sha256')
    .update(JSON.stringify([endpoint, subject, client]))
    .digest('base64url')

const sum = (a: LegacyUsageRecord | undefined, b: LegacyUsageRecord): LegacyUsageRecord =>
  a
    ? {
        ...a,
        calls: a.calls + b.calls,
        refused: a.refused + b.refused,
        firstAt: a.firstAt < b.firstAt ? a.firstAt : b.firstAt,
        lastAt: a.lastAt > b.lastAt ? a.lastAt : b.lastAt,
      }
    : b
