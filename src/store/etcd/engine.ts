// The store on etcd, for several servers. The README says what it promises.

import { closed, compacted, keyExists, keyNotFound, preconditionFailed, revisionConflict } from '../faults.ts'
import { ChangeFeed, type FeedOptions, type LogPage } from '../feed.ts'
import { entryOf, jsonText } from '../json.ts'
import { assertKey, isKey } from '../keys.ts'
import {
  type Bookmark,
  type Change,
  changeRev,
  type Entry,
  type EntryPage,
  type Exchange,
  type Health,
  type Json,
  type Precondition,
  type Rev,
  type Store,
  StoreError,
} from '../store.ts'
import { checkOptions, createOptions, EtcdCalls, repeatableOptions } from './calls.ts'
import { EtcdClient, type EtcdClientOptions, EtcdFailure } from './client.ts'
import { alarmAdvice, storeFault, unknown } from './faults.ts'
import { Follower } from './follower.ts'
import { judgeDelete, recogniseCreate, recogniseUpdate } from './lost-write.ts'
import {
  type EtcdEvent,
  type RevisionCheck as EtcdPrecondition,
  encodeCreate,
  encodeDelete,
  encodeUpdate,
  type KeyValue,
  type TxnResponse,
} from './protocol.ts'
import { listEntries, readPast } from './read.ts'
import { RecentChanges } from './recent.ts'
import { encodeRecord, Layout, newOperationId } from './records.ts'

export interface EtcdOptions extends FeedOptions, Omit<EtcdClientOptions, 'timeoutMs'> {
  /** The prefix of all keys. Stores with different prefixes may share a cluster. */
  readonly prefix: string
  /** How many of the latest revisions are kept for watchers; 0 leaves compaction to other programs. */
  readonly keepRevisions?: number
  /** How many of the latest changes are kept in memory. */
  readonly recentChanges?: number
  readonly timeoutMs?: number
  /** The first revision of a new store. */
  readonly startRev?: number | undefined
}

const defaultTimeoutMs = 5_000
const heartbeatMs = 2_000
/** If the watch has not delivered a revision after this time, the store writes a newer one. */
const syncMs = 200
const catchUpMs = 10_000
const defaultRecentChanges = 2_000
/** The revision for a precondition whose text is no revision. etcd never reaches it; 0 would match a missing key. */
const unusedRevision = Number.MAX_SAFE_INTEGER

export async function openEtcd(options: EtcdOptions): Promise<Store> {
  const client = new EtcdClient({ ...options, timeoutMs: options.timeoutMs ?? defaultTimeoutMs })
  const layout = new Layout(options.prefix)
  try {
    const calls = new EtcdCalls(client, layout)
    const { meta, revision } = await calls.meta(options.startRev ?? 0)
    layout.adopt(meta)
    return new EtcdStore(calls, meta, revision, options)
  } catch (error) {
    client.close()
    throw storeFault(error, 'the store', false)
  }
}

class EtcdStore implements Store {
  readonly #calls: EtcdCalls
  readonly #layout: Layout
  readonly #options: EtcdOptions
  readonly #feed: ChangeFeed
  readonly #follower: Follower
  readonly #recent: RecentChanges
  readonly #meta: KeyValue
  readonly #calling = new Set<Promise<unknown>>()
  readonly #heartbeat: NodeJS.Timeout
  readonly #failure = Promise.withResolvers<Error>()
  #closing: Promise<void> | undefined
  /** The revision of the latest write by this process that etcd acknowledged. */
  #acknowledged = 0
  /** Changes up to this revision cannot be read: they were compacted, or precede the data's creation or upgrade. */
  #compacted: number

  constructor(calls: EtcdCalls, meta: KeyValue, revision: number, options: EtcdOptions) {
    const { client, layout } = calls
    this.#calls = calls
    this.#layout = layout
    this.#meta = meta
    this.#compacted = meta.modRevision
    this.#options = options
    this.#feed = new ChangeFeed((prefix, after) => this.#readLog(prefix, after), layout.rev(revision), options)
    this.#recent = new RecentChanges(revision, options.recentChanges ?? defaultRecentChanges)
    this.#follower = new Follower({
      client,
      range: layout.all,
      revision,
      deliver: (events, reached) => this.#deliver(events, reached),
      skipped: (reached) => this.#skip(reached),
      newest: () => this.#calls.newest(),
    })
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs).unref()
  }

  get failed(): Promise<Error> {
    return this.#failure.promise
  }

  async get(key: string): Promise<Entry | undefined> {
    return this.#work(key, false, async () => {
      if (!isKey(key)) return undefined
      const kv = await this.#calls.find(key)
      return kv && this.#layout.entry(kv)
    })
  }

  async list(prefix: string, page?: { readonly limit: number; readonly after?: string }): Promise<EntryPage> {
    const { after, limit = Number.POSITIVE_INFINITY } = page ?? {}
    return this.#work(`${prefix}…`, false, () => listEntries(this.#calls, { prefix, after, limit }))
  }

  async create(key: string, value: Json, preconditions: readonly Precondition[] = []): Promise<Entry> {
    return this.#work(key, true, async () => {
      assertKey(key)
      const text = jsonText(key, value)
      const op = newOperationId()
      const before = this.#follower.revision
      const entryAt = (revision: number): Entry => this.#written(key, text, revision)
      try {
        const etcdKey = this.#layout.key(key)
        const { txn } = await this.#calls.txn(
          encodeCreate(etcdKey, encodeRecord(etcdKey, op, text), this.#preconditions(preconditions)),
          createOptions,
        )
        if (!txn.succeeded)
          throw preconditions.length > 0 && !txn.found ? this.#failedPrecondition(preconditions, txn) : keyExists(key)
        return entryAt(txn.header.revision)
      } catch (error) {
        if (!(error instanceof EtcdFailure && error.perhaps)) throw error
        return entryAt(await recogniseCreate(this.#calls, { key, op, before, failure: error }))
      }
    })
  }

  async update(key: string, value: Json, expect: Rev, preconditions: readonly Precondition[] = []): Promise<Entry> {
    return this.#work(key, true, async () => {
      const text = jsonText(key, value)
      const wanted = await this.#expected(key, expect)
      const op = newOperationId()
      const etcdKey = this.#layout.key(key)
      const request = encodeUpdate(etcdKey, encodeRecord(etcdKey, op, text), wanted, this.#preconditions(preconditions))
      const entryAt = (revision: number): Entry => this.#written(key, text, revision)
      try {
        const { txn, perhapsBefore } = await this.#calls.txn(request, repeatableOptions)
        const { succeeded, found, header } = txn
        const isOurs = found !== undefined && this.#layout.isWrittenBy(op, found)
        if (succeeded || isOurs) return entryAt(found?.modRevision ?? header.revision)
        // A precondition failed. No try of this write has succeeded or can still succeed, because the entry of the
        // precondition never has its old revision again.
        if (found?.modRevision === wanted) throw this.#failedPrecondition(preconditions, txn)
        // An earlier try may have succeeded before another writer changed the record.
        if (perhapsBefore) throw unknown(key, 'another writer changed it')
        throw this.#lost(key, expect, found)
      } catch (error) {
        if (!(error instanceof EtcdFailure && error.perhaps)) throw error
        return entryAt(await recogniseUpdate(this.#calls, { key, op, before: wanted, failure: error }))
      }
    })
  }

  async delete(key: string, expect: Rev): Promise<Rev> {
    return this.#work(key, true, async () => {
      const wanted = await this.#expected(key, expect)
      const request = encodeDelete(this.#layout.key(key), wanted)
      const { txn, perhapsBefore } = await this.#calls.txn(request, repeatableOptions).catch(async (error: unknown) => {
        if (!(error instanceof EtcdFailure && error.perhaps)) throw error
        throw await judgeDelete(this.#calls, { key, before: wanted, failure: error })
      })
      const { succeeded, header, found } = txn
      if (succeeded) {
        this.#acknowledge(header.revision)
        return this.#layout.rev(header.revision)
      }
      // A deletion leaves no operation id. Only a record that existed throughout was certainly not deleted.
      if (perhapsBefore && !(found && found.createRevision <= wanted)) throw unknown(key, 'it was deleted')
      throw this.#lost(key, expect, found)
    })
  }

  async *watch(...watched: Parameters<Store['watch']>): AsyncGenerator<readonly Change[] | Bookmark, void> {
    if (this.#closing) throw closed()
    await this.#catchUp(watched[1], watched[2])
    yield* this.#feed.watch(...watched)
  }

  async reached(rev: Rev, signal: AbortSignal): Promise<void> {
    if (!(this.#layout.revision(rev) <= this.#follower.revision)) await this.#catchUp(rev, signal)
    signal.throwIfAborted()
    this.#feed.assertReached(rev)
  }

  readonly exchange: Exchange = {
    deliveredRev: () => this.#layout.rev(this.#follower.revision),
    changesAfter: (after) => {
      const from = this.#layout.revision(after)
      if (!(from >= this.#recent.since)) return undefined
      return { changes: this.#recent.after(from, ''), rev: this.exchange.deliveredRev() }
    },
    learn: (after, { changes, rev }) => {
      const from = this.#follower.revision
      const isJoined = this.#layout.revision(after) <= from
      if (!isJoined || !(this.#layout.revision(rev) > from) || this.#closing) return
      const fresh = changes.filter((change) => this.#layout.revision(changeRev(change)) > from)
      for (const change of fresh)
        this.#recent.push(change, this.#layout.revision(changeRev(change)), JSON.stringify(change).length)
      this.#feed.publish(fresh, rev)
      this.#follower.advance(this.#layout.revision(rev))
      this.#feed.assertReached(rev)
    },
  }

  async compact(rev: Rev): Promise<void> {
    const target = this.#layout.revision(rev)
    if (Number.isNaN(target)) throw new TypeError(`"${rev}" is not a revision`)
    await this.#work('the past', true, async () => this.#forget(Math.min(target, await this.#calls.newest())))
  }

  async health(): Promise<Health> {
    try {
      return await this.#work('its state', false, async () => {
        await this.#calls.range({ key: this.#layout.metaKey }, checkOptions)
        const [alarm] = await this.#calls.alarms()
        if (alarm) return { ok: false, message: alarmAdvice[alarm] }
        const { trouble } = this.#follower
        const members = this.#options.endpoints.map(({ url }) => new URL(url).host).join(', ')
        return { ok: true, message: `etcd at ${members}${trouble ? `; renewing its watch: ${trouble}` : ''}` }
      })
    } catch (error) {
      if (error instanceof StoreError) return { ok: false, message: error.message }
      throw error
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    clearInterval(this.#heartbeat)
    await Promise.allSettled(this.#calling)
    this.#feed.end()
    await this.#follower.stop()
    this.#calls.client.close()
  }

  /** Tracks the call, so that `close` waits for it, and converts its errors. */
  async #work<T>(what: string, isWrite: boolean, work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw closed()
    const working = work()
    this.#calling.add(working)
    try {
      return await working
    } catch (error) {
      throw storeFault(error, what, isWrite)
    } finally {
      this.#calling.delete(working)
    }
  }

  /**
   * Returns the etcd revision that the entry must have. Text that is no revision is refused in the same way as a
   * revision that the entry does not have.
   */
  async #expected(key: string, expect: Rev): Promise<number> {
    const revision = this.#layout.revision(expect)
    if (isKey(key) && revision > 0) return revision
    throw this.#lost(key, expect, isKey(key) ? await this.#calls.find(key) : undefined)
  }

  #lost(key: string, expect: Rev, found: KeyValue | undefined): StoreError {
    return found ? revisionConflict(key, expect, this.#layout.rev(found.modRevision)) : keyNotFound(key)
  }

  #preconditions(preconditions: readonly Precondition[]): EtcdPrecondition[] {
    return preconditions.map(({ key, rev }) => {
      const revision = this.#layout.revision(rev)
      return { key: this.#layout.key(key), modRevision: isKey(key) && revision > 0 ? revision : unusedRevision }
    })
  }

  /** The error for the first precondition that does not hold. */
  #failedPrecondition(preconditions: readonly Precondition[], { foundPreconditions }: TxnResponse): Error {
    for (const [n, each] of preconditions.entries()) {
      const found = isKey(each.key) ? foundPreconditions[n] : undefined
      const actual = found && this.#layout.rev(found.modRevision)
      if (actual !== each.rev) return preconditionFailed(each, actual)
    }
    return new Error('etcd refused a write of which every comparison holds')
  }

  #written(key: string, text: string, revision: number): Entry {
    this.#acknowledge(revision)
    return entryOf(key, text, this.#layout.rev(revision))
  }

  #acknowledge(revision: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, revision)
    const keep = this.#options.keepRevisions ?? 10_000
    // Waits for an eighth more revisions than are kept, so that compactions are rare.
    if (keep > 0 && revision - this.#compacted > keep + keep / 8)
      // The error is ignored: etcd may be unreachable, and a later write compacts.
      this.#forget(revision - keep).catch(() => undefined)
  }

  async #forget(revision: number): Promise<void> {
    if (revision <= this.#compacted) return
    this.#compacted = revision
    await this.#calls.compact(revision)
  }

  #deliver(events: readonly EtcdEvent[], revision: number): void {
    const changes: Change[] = []
    let isGap = false
    for (const event of events) {
      const { kv, previous } = event
      if (kv.key === this.#meta.key) this.#fail(replaced('its record of itself was rewritten, as a restore does'))
      const change = this.#changeOf(event)
      if (change === 'gap') isGap = true
      else if (change) {
        changes.push(change)
        this.#recent.push(change, kv.modRevision, kv.value.length + (previous?.value.length ?? 0))
      }
    }
    // A previous value was compacted or is damaged, so watchers must list again.
    if (isGap) this.#skip(revision)
    else this.#feed.publish(changes, this.#layout.rev(revision))
  }

  /** Fails the store on a damaged record, because skipping the change would hide the damage. */
  #changeOf(event: EtcdEvent): ReturnType<Layout['change']> {
    try {
      return this.#layout.change(event)
    } catch (error) {
      if (error instanceof StoreError) this.#fail(error)
      throw error
    }
  }

  #skip(revision: number): void {
    this.#recent.restart(revision)
    this.#feed.skipTo(this.#layout.rev(revision))
  }

  /** Reads past changes for a watcher, from memory or from etcd. */
  async #readLog(prefix: string, after: Rev): Promise<LogPage> {
    const from = this.#layout.revision(after)
    if (!(from >= this.#compacted)) throw compacted(after)
    if (from < this.#recent.since) {
      await this.#calls.assertKept(from, after)
      return readPast(this.#calls, { prefix, after, target: this.#recent.since, ceiling: this.#follower.revision })
    }
    return { changes: this.#recent.after(from, prefix), rev: this.#layout.rev(this.#follower.revision) }
  }

  /** Waits until the watch has reached `after`, and every write by this process that etcd acknowledged. */
  async #catchUp(after: Rev, signal: AbortSignal): Promise<void> {
    const requested = this.#layout.revision(after)
    const wanted = Math.max(this.#acknowledged, Number.isNaN(requested) ? 0 : requested)
    if (wanted <= this.#follower.revision || signal.aborted) return
    if (requested > this.#acknowledged) await this.#calls.assertKept(requested, after)
    if (await this.#follower.reached(wanted, syncMs, signal)) return
    // Another program may have made the revision. The watch passes it only at a later write below this store's prefix.
    await this.#calls.sync().catch(() => undefined)
    if ((await this.#follower.reached(wanted, catchUpMs, signal)) || signal.aborted || this.#closing) return
    throw new StoreError('Unavailable', `The etcd watch has not reached revision ${after} yet: try again`)
  }

  /** Prefers the current leader, tests the connection, and fails the store if etcd's history has gone back. */
  async #beat(): Promise<void> {
    await this.#calls.client.follow()
    const before = this.#follower.revision
    const newest = await this.#calls.newest(checkOptions).catch(() => before)
    if (newest < before && !this.#closing) this.#fail(replaced('its history went back, as after a restore'))
  }

  #fail(error: StoreError): void {
    this.#failure.resolve(error)
    this.#feed.end(error)
  }
}

const replaced = (why: string): StoreError =>
  new StoreError('Unavailable', `The data in etcd was replaced (${why}): restart svc3`)
