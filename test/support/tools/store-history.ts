// Writers under load and a checker: acknowledged writes are in the history once, refused ones never, unknown ones at most
// once, and a watch saw all of it in order.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Change,
  changeKey,
  changeRev,
  compareRevs,
  type Entry,
  type Json,
  type Rev,
  type Store,
  StoreError,
  type StoreFault,
} from '../../../src/store/store.ts'

type Outcome = { readonly rev: Rev } | { readonly fault: StoreFault }
interface Attempt {
  readonly kind: 'put' | 'delete'
  readonly key: string
  /** For a put, unique. For a deletion, the revision to delete. */
  readonly id: string
  readonly outcome: Outcome
}

interface Load {
  /** Of the latest acknowledged write. */
  readonly lastAckMs: () => number
  /** The number of acknowledged writes. */
  readonly acknowledged: () => number
  readonly faults: () => Readonly<Partial<Record<StoreFault, number>>>
  /** The longest time without an acknowledged write since the last call. */
  takeLongestGapMs(): number
  /** Ends the writers and checks everything; `fresh` is another connection to the same data. */
  finish(fresh: Store): Promise<void>
}

export async function startLoad(store: Store, prefix: string, writers = 6): Promise<Load> {
  const attempts: Attempt[] = []
  const faults: Partial<Record<StoreFault, number>> = {}
  const stopping = new AbortController()
  const start = (await store.list(prefix)).rev
  let ids = 0
  let lastAckMs = performance.now()
  let longestGapMs = 0

  async function attempt<T extends { readonly rev: Rev }>(
    kind: Attempt['kind'],
    key: string,
    id: string,
    write: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      const done = await write()
      attempts.push({ kind, key, id, outcome: { rev: done.rev } })
      longestGapMs = Math.max(longestGapMs, performance.now() - lastAckMs)
      lastAckMs = performance.now()
      return done
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      attempts.push({ kind, key, id, outcome: { fault: error.fault } })
      faults[error.fault] = (faults[error.fault] ?? 0) + 1
      return undefined
    }
  }
  const put = async (key: string, previous?: Entry): Promise<Entry | undefined> => {
    const id = String(++ids)
    const value: Json = { id, padding: 'x'.repeat(ids % 500) }
    return attempt('put', key, id, () => (previous ? store.update(key, value, previous.rev) : store.create(key, value)))
  }
  const write = async (_: unknown, writer: number): Promise<void> => {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const created = await put(`${prefix}${writer}/${n}`)
      const updated = created && (await put(created.key, created))
      if (updated && n % 2 === 0)
        await attempt('delete', updated.key, updated.rev, async () => ({
          rev: await store.delete(updated.key, updated.rev),
        }))
      // All writers meet here.
      const shared = await store.get(`${prefix}shared`).catch(() => undefined)
      await put(`${prefix}shared`, shared)
      await sleep(5)
    }
  }

  const seen: Change[] = []
  const watching = (async () => {
    for (let from = start; !stopping.signal.aborted; ) {
      try {
        for await (const batch of store.watch(prefix, from, stopping.signal)) {
          if ('type' in batch) from = batch.rev
          else {
            seen.push(...batch)
            from = changeRev(batch.at(-1) as Change)
          }
        }
      } catch (error) {
        // Only this error may pass: a watch that was compacted or broken otherwise fails the test.
        if (!(error instanceof StoreError && error.fault === 'Unavailable')) throw error
        await sleep(20)
      }
    }
  })()
  const writing = Promise.all(Array.from({ length: writers }, write))

  return {
    lastAckMs: () => lastAckMs,
    acknowledged: () => attempts.filter(({ outcome }) => 'rev' in outcome).length,
    faults: () => faults,
    takeLongestGapMs: () => {
      const gapMs = Math.max(longestGapMs, performance.now() - lastAckMs)
      longestGapMs = 0
      return gapMs
    },
    finish: async (fresh) => {
      const { rev } = await fresh.create(`${prefix}end`, { id: 'end' })
      const deadlineMs = performance.now() + 120_000
      while (!seen.some((change) => changeRev(change) === rev)) {
        assert.ok(performance.now() < deadlineMs, `the watch did not reach revision ${rev}`)
        await sleep(20)
      }
      stopping.abort()
      await Promise.all([writing, watching])
      const page = await fresh.list(prefix)
      const history: Change[] = []
      const all = new AbortController()
      for await (const batch of fresh.watch(prefix, start, all.signal)) {
        if (!('type' in batch)) history.push(...batch)
        else if (compareRevs(batch.rev, page.rev) >= 0) all.abort()
      }
      check(history, seen, attempts, page.entries)
    },
  }
}

const idOf = (change: Change): string =>
  change.type === 'put' ? (change.entry.value as { id: string }).id : change.previous.rev

function check(
  history: readonly Change[],
  seen: readonly Change[],
  attempts: readonly Attempt[],
  entries: readonly Entry[],
): void {
  for (const [n, change] of history.entries()) {
    const before = history[n - 1]
    if (before) assert.ok(compareRevs(changeRev(before), changeRev(change)) < 0, 'revisions increase')
  }
  assert.deepEqual(seen, history.slice(0, seen.length), 'the watch saw everything, once, in order')
  const label = (kind: string, key: string, id: string): string => `${kind} ${key} ${id}`
  const found = new Map<string, Rev>()
  for (const change of history) {
    const name = label(change.type, changeKey(change), idOf(change))
    assert.ok(!found.has(name), `${name} was carried out twice`)
    found.set(name, changeRev(change))
  }
  for (const { kind, key, id, outcome } of attempts) {
    const name = label(kind, key, id)
    if ('rev' in outcome) assert.equal(found.get(name), outcome.rev, `${name} was acknowledged`)
    else if (outcome.fault !== 'Unknown')
      // A refused deletion could only be another writer's, and there is none.
      assert.equal(found.get(name), undefined, `${name} was refused (${outcome.fault}) and carried out`)
  }
  const state = new Map<string, Entry>()
  for (const change of history)
    if (change.type === 'put') state.set(change.entry.key, change.entry)
    else state.delete(change.key)
  assert.deepEqual(new Map(entries.map((entry) => [entry.key, entry])), state)
}
