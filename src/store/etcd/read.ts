// Reading much from etcd: lists in pages of one revision, and the past of a watcher.

import { compacted } from '../faults.ts'
import type { LogPage } from '../feed.ts'
import { type Change, changeKey, type Entry, isFault, type Page, type Rev, StoreError } from '../store.ts'
import { type EtcdCalls, isOutOfRange, paging } from './calls.ts'
import type { EtcdEvent } from './protocol.ts'
import type { Layout } from './records.ts'
import { readWatch } from './watch.ts'

const firstPageEntries = 200
const maxPageEntries = 5_000
const wantedPageBytes = 2_000_000
const maxTries = 3
const logPageChanges = 500
const logMs = 10_000
const helpAfterMs = 300

interface ListOptions {
  readonly prefix: string
  readonly after: string | undefined
  readonly limit: number
}

export async function listEntries(calls: EtcdCalls, options: ListOptions): Promise<Page> {
  for (let tries = 1; ; tries++) {
    try {
      return await listAtOneRevision(calls, options)
    } catch (error) {
      // The revision of the first page was compacted before the last was read.
      if (!isOutOfRange(error) || tries >= maxTries) throw error
    }
  }
}

/** As many entries a page as make about the same number of bytes. */
async function listAtOneRevision(calls: EtcdCalls, { prefix, after, limit }: ListOptions): Promise<Page> {
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
    // For etcd a limit of 0 is none, and a range that ends before it begins is an error.
    const request = isEmpty ? { key: layout.metaKey, countOnly: true } : { key: from, end, limit: wanted }
    const found = await calls.range({ ...request, revision }, paging)
    revision ??= found.header.revision
    for (const kv of found.kvs) entries.push(layout.entry(kv))
    const last = found.kvs.at(-1)
    if (!last || !found.more || entries.length >= limit) return { entries, rev: layout.rev(revision) }
    from = following(Buffer.from(last.key))
    const fitting = Math.floor((wantedPageBytes * found.kvs.length) / (found.bytes + 1))
    pageEntries = Math.max(1, Math.min(fitting, maxPageEntries))
  }
}

/** The first key after this one. */
const following = (key: Buffer): Buffer => Buffer.concat([key, Buffer.alloc(1)])

interface PastOptions {
  readonly prefix: string
  readonly after: Rev
  /** A change with this revision, or at least one that is later, ends the past. */
  readonly target: number
  /** Later changes are left to others. */
  readonly ceiling: number
}

/** The changes after a revision, a page of them. */
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
  // Where others write to the same cluster, the target may be theirs: then a change of ours has to come after it.
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

/** A damaged one in the past is a gap: the list that follows finds what is damaged still. */
function changeOf(layout: Layout, event: EtcdEvent): ReturnType<Layout['change']> {
  try {
    return layout.change(event)
  } catch (error) {
    if (isFault(error, 'Damaged')) return 'gap'
    throw error
  }
}
