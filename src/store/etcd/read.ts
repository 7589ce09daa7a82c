// Lists in pages of one revision, and the history for a watcher.

import { retry, retryPolicies } from '../../platform/retry.ts'
import { compacted } from '../faults.ts'
import type { LogPage } from '../feed.ts'
import { type Change, changeKey, type Entry, type EntryPage, isFault, type Rev, StoreError } from '../store.ts'
import { type EtcdCalls, isOutOfRange, pagingOptions } from './calls.ts'
import type { EtcdEvent } from './protocol.ts'
import type { Layout } from './records.ts'
import { readWatch } from './watch.ts'

const firstPageEntries = 200
const maxPageEntries = 5_000
const wantedPageBytes = 2_000_000
const logPageChanges = 500
const logMs = 10_000
const helpAfterMs = 300

interface ListOptions {
  readonly prefix: string
  readonly after: string | undefined
  readonly limit: number
}

/** Retries if the revision of the first page is compacted before the last page is read. */
export const listEntries = (calls: EtcdCalls, options: ListOptions): Promise<EntryPage> =>
  retry(() => listAtOneRevision(calls, options), { policy: retryPolicies.conflict, isRetriable: isOutOfRange })

/** Adapts the number of entries per page to their size. */
async function listAtOneRevision(calls: EtcdCalls, { prefix, after, limit }: ListOptions): Promise<EntryPage> {
  const { layout } = calls
  const { key, end } = layout.prefix(prefix)
  const start = after === undefined ? key : following(layout.key(after))
  let from = Buffer.compare(start, key) > 0 ? start : key
  const entries: Entry[] = []
  let pageEntries = firstPageEntries
  let revision: number | undefined
  for (;;) {
    const wanted = Math.min(limit - entries.length, pageEntries)
    const isEmpty = wanted <= 0 || Buffer.compare(from, end) >= 0
    // etcd takes a limit of 0 as unlimited, and refuses a range that ends before it begins.
    const request = isEmpty ? { key: layout.metaKey, countOnly: true } : { key: from, end, limit: wanted }
    const found = await calls.range({ ...request, revision }, pagingOptions)
    revision ??= found.header.revision
    for (const kv of found.kvs) entries.push(layout.entry(kv))
    const last = found.kvs.at(-1)
    if (!last || !found.more || entries.length >= limit) return { entries, rev: layout.rev(revision) }
    from = following(Buffer.from(last.key))
    const fitting = Math.floor((wantedPageBytes * found.kvs.length) / (found.bytes + 1))
    pageEntries = Math.max(1, Math.min(fitting, maxPageEntries))
  }
}

const following = (key: Buffer): Buffer => Buffer.concat([key, Buffer.alloc(1)])

interface PastOptions {
  readonly prefix: string
  readonly after: Rev
  /** The history ends at a change with at least this revision. */
  readonly target: number
  /** Later changes are left to the live watch. */
  readonly ceiling: number
}

/** Returns a page of the changes after a revision. */
export async function readPast(calls: EtcdCalls, { prefix, after, target, ceiling }: PastOptions): Promise<LogPage> {
  const { client, layout } = calls
  const from = layout.revision(after)
  const enough = new AbortController()
  const signal = AbortSignal.any([enough.signal, AbortSignal.timeout(logMs)])
  const changes: Change[] = []
  let reached = from
  let isGap = false
  let last = target
  const judge = (): void => {
    if (isGap || reached >= last || reached >= ceiling || changes.length >= logPageChanges) enough.abort()
  }
  // If another program writes to the cluster, the target may be its revision. A later write of this store then ends the
  // history.
  const help = setTimeout(async () => {
    last = await calls.sync().catch(() => last)
    judge()
  }, helpAfterMs)
  const end = await readWatch(client, layout.all, from + 1, signal, (events, revision) => {
    for (const event of events) {
      const change = event.kv.modRevision > ceiling ? undefined : changeOf(layout, event)
      if (change === 'gap') isGap = true
      else if (change && changeKey(change).startsWith(prefix)) changes.push(change)
    }
    reached = revision
    judge()
  })
  clearTimeout(help)
  if (isGap || end.kind === 'compacted') throw compacted(after)
  if (reached > from) return { changes, rev: layout.rev(Math.min(reached, ceiling)) }
  throw new StoreError('Unavailable', `The changes after revision ${after} cannot be read from etcd; try again`)
}

/** Returns a gap for damaged changes, after which watchers list again. The list reports entries still damaged. */
function changeOf(layout: Layout, event: EtcdEvent): ReturnType<Layout['change']> {
  try {
    return layout.change(event)
  } catch (error) {
    if (isFault(error, 'Damaged')) return 'gap'
    throw error
  }
}
