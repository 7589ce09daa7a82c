// The store in memory, for tests and as the simplest implementation of the contract.
import { closed, compacted, keyExists, keyNotFound, preconditionFailed, revisionConflict, revNumber } from './faults.ts'
import { ChangeFeed, type FeedOptions, type LogPage } from './feed.ts'
import { entryOf, jsonText } from './json.ts'
import { assertKey } from './keys.ts'
import { SortedKeys } from './sorted-keys.ts'
import type { Change, Entry, Json, Precondition, Rev, Store } from './store.ts'
import { changeKey, zeroRev } from './store.ts'

interface MemoryOptions extends FeedOptions {
  /** How many of the latest changes are kept for watchers. */
  readonly keepRevisions?: number
}

const pageRevisions = 500

export function openMemory(options: MemoryOptions = {}): Store {
  const keepRevisions = options.keepRevisions ?? 10_000
  const entries = new Map<string, Entry>()
  const keys = new SortedKeys()
  /** The change of revision n is at index n - compactedRev - 1. */
  let log: Change[] = []
  let compactedRev = 0
  let rev = 0
  let isOpen = true

  const readLog = async (prefix: string, after: Rev): Promise<LogPage> => {
    assertOpen()
    const from = revNumber(after) - compactedRev
    if (!(from >= 0)) throw compacted(after)
    const rows = log.slice(from, from + pageRevisions)
    const changes = rows.filter((change) => changeKey(change).startsWith(prefix))
    return { changes, rev: String(compactedRev + from + rows.length) }
  }
  const feed = new ChangeFeed(readLog, zeroRev, options)

  const assertOpen = (): void => {
    if (!isOpen) throw closed()
  }
  const forgetUpTo = (target: number): void => {
    if (target <= compactedRev) return
    log = log.slice(target - compactedRev)
    compactedRev = target
  }
  const commit = (change: Change): void => {
    log.push(change)
    // Compacts only when an eighth more has gathered, so that the log is not moved for every write.
    if (log.length > keepRevisions + keepRevisions / 8) forgetUpTo(rev - keepRevisions)
    feed.publish([change], String(rev))
  }
  /** Returns the entry if it is still at the caller's revision. */
  const expectEntry = (key: string, expect: Rev): Entry => {
    const entry = entries.get(key)
    if (!entry) throw keyNotFound(key)
    if (entry.rev !== expect) throw revisionConflict(key, expect, entry.rev)
    return entry
  }
  const assertUnmoved = (preconditions: readonly Precondition[] = []): void => {
    for (const each of preconditions) {
      const actual = entries.get(each.key)?.rev
      if (actual !== each.rev) throw preconditionFailed(each, actual)
    }
  }
  const put = (key: string, text: string, previous: Entry | undefined): Entry => {
    const entry = entryOf(key, text, String(++rev))
    frozen(entry.value)
    entries.set(key, entry)
    if (!previous) keys.add(key)
    commit({ type: 'put', entry, ...(previous && { previous }) })
    return entry
  }

  return {
    async get(key) {
      assertOpen()
      return entries.get(key)
    },
    async list(prefix, page) {
      assertOpen()
      const found = keys.range(prefix, page?.after, page?.limit).map((key) => entries.get(key) as Entry)
      return { entries: found, rev: String(rev) }
    },
    async create(key, value, preconditions) {
      assertOpen()
      assertKey(key)
      const text = jsonText(key, value)
      if (entries.has(key)) throw keyExists(key)
      assertUnmoved(preconditions)
      return put(key, text, undefined)
    },
    async update(key, value, expect, preconditions) {
      assertOpen()
      const text = jsonText(key, value)
      const previous = expectEntry(key, expect)
      assertUnmoved(preconditions)
      return put(key, text, previous)
    },
    async delete(key, expect) {
      assertOpen()
      const previous = expectEntry(key, expect)
      entries.delete(key)
      keys.delete(key)
      const deletion = String(++rev)
      commit({ type: 'delete', key, rev: deletion, previous })
      return deletion
    },
    watch: (...watched) => feed.watch(...watched),
    async reached(wanted) {
      feed.assertReached(wanted)
    },
    async compact(target) {
      assertOpen()
      const wanted = revNumber(target)
      if (Number.isNaN(wanted)) throw new TypeError(`"${target}" is not a revision`)
      forgetUpTo(Math.min(wanted, rev))
    },
    async health() {
      return isOpen ? { ok: true, message: 'in memory' } : { ok: false, message: closed().message }
    },
    failed: new Promise(() => undefined),
    async close() {
      isOpen = false
      feed.end()
    },
  }
}

/** Freezes values, so that a test fails if code alters a value that it passed in or was given. */
function frozen(value: Json): Json {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const each of Object.values(value)) frozen(each as Json)
  return Object.freeze(value)
}
