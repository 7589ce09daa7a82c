// The embedded store: SQLite in one folder, for one process at a time. This side sends the requests of one turn of the
// event loop to the thread (sqlite-thread.ts) in one message, and settles the replies.
import fs from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { syncFolder } from '../../platform/files.ts'
import { findThread } from '../../platform/threads.ts'
import {
  closed,
  compacted,
  keyExists,
  keyNotFound,
  preconditionFailed,
  revisionConflict,
  revNumber,
} from '../faults.ts'
import { ChangeFeed, type FeedOptions, type LogPage } from '../feed.ts'
import { entryOf, jsonText } from '../json.ts'
import { assertKey, compareKeys, isKey } from '../keys.ts'
import {
  type Bookmark,
  type Change,
  changeKey,
  type Entry,
  type EntryPage,
  type Health,
  type Json,
  type Precondition,
  type Rev,
  type Store,
  StoreError,
} from '../store.ts'
import type { LogRow, Opening, Preconditions, Request, Row, ThreadOptions, ThreadReply } from './protocol.ts'

interface SqliteOptions extends FeedOptions {
  /** How many of the latest changes are kept for watchers. */
  readonly keepRevisions?: number
  /** The first revision of a new store. */
  readonly startRev?: number
  /** Another program for the thread, for tests. */
  readonly thread?: URL
}

/** Opens the database in `folder`, and creates it if there is none. */
export async function openSqlite(folder: string, options: SqliteOptions = {}): Promise<Store> {
  const file = path.join(folder, 'svc3.db')
  await prepareFiles(folder, file)
  const { keepRevisions = 10_000, startRev = 0 } = options
  const workerData: ThreadOptions = { file, folder, keepRevisions, startRev }
  // The thread gets no flags of this process, some of which (--input-type) apply to its main file only.
  const program = options.thread ?? findThread('sqlite-thread', import.meta.url)
  const worker = new Worker(program, { name: 'svc3-store', workerData, execArgv: [] })
  const opening = await firstMessage(worker).catch((cause: unknown) => {
    throw new StoreError('Unavailable', `The store thread for ${folder} could not start: ${String(cause)}`, { cause })
  })
  if (opening[0] === 'opened') return new SqliteStore(worker, folder, opening[1], options)
  await worker.terminate()
  throw new StoreError(opening[1], opening[2])
}

function firstMessage(worker: Worker): Promise<Opening> {
  return new Promise((resolve, reject) => {
    const done = (settle: () => void): void => {
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      settle()
    }
    const onMessage = (opening: Opening): void => done(() => resolve(opening))
    const onError = (error: Error): void => done(() => reject(error))
    const onExit = (exitCode: number): void => done(() => reject(new Error(`it ended with code ${exitCode}`)))
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
  })
}

/**
 * Creates the folder with mode 0700 and the file with 0600; SQLite gives -wal the same mode. An existing file is not
 * opened, because closing it would release the locks of a store that this process has open on it.
 */
async function prepareFiles(folder: string, file: string): Promise<void> {
  try {
    const made = await fs.promises.mkdir(folder, { recursive: true, mode: 0o700 })
    if (made)
      for (const folderAbove of new Set([path.dirname(folder), path.dirname(made)])) await syncFolder(folderAbove)
    try {
      await (await fs.promises.open(file, 'wx', 0o600)).close()
      await syncFolder(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      await fs.promises.chmod(file, 0o600)
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StoreError('Unavailable', `The data folder ${folder} cannot be used: ${reason}`, { cause })
  }
}

interface Waiting {
  readonly request: Request
  readonly resolve: (settled: Settled) => void
  readonly reject: (error: StoreError) => void
}

/** `entry` is set for a create or an update. */
interface Settled {
  readonly answer: ThreadReply
  readonly entry: Entry | undefined
}

const writes: ReadonlySet<Request[0]> = new Set(['create', 'update', 'delete', 'compact'])

class SqliteStore implements Store {
  readonly #worker: Worker
  readonly #folder: string
  readonly #feed: ChangeFeed
  /** Requests of this turn of the event loop, or that arrived during a commit. */
  #unsent: Waiting[] = []
  /** Requests without a reply from `#sentOffset` on. Replies come in the same order. */
  #sent: readonly Waiting[] = []
  #sentOffset = 0
  /** Lists that are read in parts. Each applies the changes that are made before its last part is read. */
  readonly #lists = new Set<(change: Change) => void>()
  #closing: Promise<void> | undefined
  #death: StoreError | undefined
  readonly #exited: Promise<void>
  readonly #failure = Promise.withResolvers<Error>()

  constructor(worker: Worker, folder: string, rev: number, options: FeedOptions) {
    this.#worker = worker
    this.#folder = folder
    this.#feed = new ChangeFeed((prefix, after) => this.#readLog(prefix, after), String(rev), options)
    worker.on('message', (answers: ThreadReply[]) => this.#settle(answers))
    worker.on('error', (error) => this.#die(error))
    this.#exited = new Promise((resolve) => {
      worker.on('exit', (exitCode) => {
        if (!this.#closing || this.#sent.length > 0) this.#die(new Error(`it ended with code ${exitCode}`))
        resolve()
      })
    })
  }

  get failed(): Promise<Error> {
    return this.#failure.promise
  }

  async get(key: string): Promise<Entry | undefined> {
    if (!isKey(key)) return undefined
    const answer = expectAnswer('rows', (await this.#ask(['get', key])).answer)
    return answer[1].map(toEntry)[0]
  }

  async list(prefix: string, page?: { readonly limit: number; readonly after?: string }): Promise<EntryPage> {
    const found = new Map<string, Entry>()
    let isChanged = false
    const apply = (change: Change): void => {
      const key = changeKey(change)
      if (!key.startsWith(prefix)) return
      isChanged = true
      if (change.type === 'put') found.set(key, change.entry)
      else found.delete(key)
    }
    let after = page?.after ?? ''
    try {
      for (;;) {
        const { answer } = await this.#ask(['list', prefix, after, page?.limit ?? -1])
        const [, rows, rev, isPart] = expectAnswer('rows', answer)
        for (const row of rows) found.set(row[0], toEntry(row))
        const last = rows.at(-1)
        if (!isPart || !last) {
          const entries = [...found.values()]
          return { entries: isChanged ? entries.sort((a, b) => compareKeys(a.key, b.key)) : entries, rev: String(rev) }
        }
        after = last[0]
        this.#lists.add(apply)
      }
    } finally {
      this.#lists.delete(apply)
    }
  }

  async create(key: string, value: Json, preconditions: readonly Precondition[] = []): Promise<Entry> {
    assertKey(key)
    const text = jsonText(key, value)
    const request: Request = ['create', key, text, preconditionsOf(preconditions)]
    const { answer, entry } = await this.#ask(request)
    if (answer[0] === 'exists') throw keyExists(key)
    if (!entry) throw failedPrecondition(preconditions, answer)
    return entry
  }

  async update(key: string, value: Json, expect: Rev, preconditions: readonly Precondition[] = []): Promise<Entry> {
    const text = jsonText(key, value)
    if (!isKey(key)) throw keyNotFound(key)
    const request: Request = ['update', key, text, revNumber(expect), preconditionsOf(preconditions)]
    const { answer, entry } = await this.#ask(request)
    if (answer[0] === 'absent') throw keyNotFound(key)
    if (answer[0] === 'conflict') throw revisionConflict(key, expect, String(answer[1]))
    if (!entry) throw failedPrecondition(preconditions, answer)
    return entry
  }

  async delete(key: string, expect: Rev): Promise<Rev> {
    if (!isKey(key)) throw keyNotFound(key)
    const { answer } = await this.#ask(['delete', key, revNumber(expect)])
    if (answer[0] === 'absent') throw keyNotFound(key)
    if (answer[0] === 'conflict') throw revisionConflict(key, expect, String(answer[1]))
    return String(expectAnswer('written', answer)[1])
  }

  watch(...watched: Parameters<Store['watch']>): AsyncIterable<readonly Change[] | Bookmark> {
    return this.#feed.watch(...watched)
  }

  async reached(rev: Rev): Promise<void> {
    this.#feed.assertReached(rev)
  }

  async compact(rev: Rev): Promise<void> {
    const target = revNumber(rev)
    if (Number.isNaN(target)) throw new TypeError(`"${rev}" is not a revision`)
    expectAnswer('done', (await this.#ask(['compact', target])).answer)
  }

  async health(): Promise<Health> {
    try {
      expectAnswer('done', (await this.#ask(['check'])).answer)
      return { ok: true, message: `SQLite in ${this.#folder}` }
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
    const last = this.#death ? undefined : this.#ask(['close'])
    this.#feed.end()
    // A thread that died has nothing left to close, and its writers have been told.
    await last?.catch(() => {})
    await this.#exited
  }

  async #readLog(prefix: string, after: Rev): Promise<LogPage> {
    const { answer } = await this.#ask(['log', prefix, revNumber(after)])
    if (answer[0] === 'compacted') throw compacted(after)
    const [, rows, rev] = expectAnswer('log', answer)
    return { changes: rows.map(toChange), rev: String(rev) }
  }

  #ask(request: Request): Promise<Settled> {
    return new Promise((resolve, reject) => {
      if (this.#death) throw new StoreError('Unavailable', this.#death.message, { cause: this.#death })
      if (this.#closing) throw closed()
      if (this.#unsent.push({ request, resolve, reject }) === 1) this.#sendSoon()
    })
  }

  /** Requests that arrive in one turn of the event loop, or during a commit, share a message. */
  #sendSoon(): void {
    if (this.#sent.length === 0) setImmediate(() => this.#send())
  }

  #send(): void {
    const unsent = this.#unsent
    if (this.#death || unsent.length === 0) return
    this.#unsent = []
    this.#sent = unsent
    this.#worker.postMessage(unsent.map(({ request }) => request))
  }

  #settle(answers: readonly ThreadReply[]): void {
    const changes: Change[] = []
    const settled: (Settled & { readonly waiting: Waiting })[] = []
    let rev: number | undefined
    for (const answer of answers) {
      const waiting = this.#nextSent()
      const { request } = waiting
      let entry: Entry | undefined
      if (answer[0] === 'written') {
        rev = answer[1]
        if (request[0] === 'create' || request[0] === 'update') entry = entryOf(request[1], request[2], String(rev))
        changes.push(committed(String(request[1]), entry, answer))
      }
      settled.push({ waiting, answer, entry })
    }
    for (const apply of this.#lists) changes.forEach(apply)
    // Published before the writers are told, because they may start a watch from the revision that they get.
    if (rev !== undefined) this.#feed.publish(changes, String(rev))
    for (const { waiting, answer, entry } of settled)
      if (answer[0] === 'failed') waiting.reject(new StoreError(answer[1], answer[2]))
      else waiting.resolve({ answer, entry })
    if (this.#unsent.length > 0) this.#sendSoon()
  }

  #nextSent(): Waiting {
    const waiting = this.#sent[this.#sentOffset++]
    if (!waiting) throw new Error('The store thread sent an unexpected answer')
    if (this.#sentOffset === this.#sent.length) {
      this.#sent = []
      this.#sentOffset = 0
    }
    return waiting
  }

  #die(cause: Error): void {
    if (this.#death) return
    const message = `The store thread for ${this.#folder} has died (${cause.message}): restart svc3`
    this.#death = new StoreError('Unavailable', message, { cause })
    for (const { request, reject } of this.#sent.slice(this.#sentOffset)) {
      const isWrite = writes.has(request[0])
      const perhaps = `${message}, then check whether "${request[1]}" was written`
      reject(new StoreError(isWrite ? 'Unknown' : 'Unavailable', isWrite ? perhaps : message, { cause }))
    }
    for (const { reject } of this.#unsent) reject(this.#death)
    this.#sent = []
    this.#unsent = []
    this.#feed.end(this.#death)
    this.#failure.resolve(this.#death)
  }
}

const toEntry = ([key, text, rev]: Row): Entry => entryOf(key, text, String(rev))

const toPrevious = (key: string, text: string | null, rev: number | null): Entry | undefined =>
  text === null || rev === null ? undefined : toEntry([key, text, rev])

const toChange = ([rev, key, text, previousText, previousRev]: LogRow): Change =>
  committed(key, text === null ? undefined : toEntry([key, text, rev]), ['written', rev, previousText, previousRev])

/** Without `entry` the change is a deletion. */
function committed(
  key: string,
  entry: Entry | undefined,
  answer: Extract<ThreadReply, { readonly 0: 'written' }>,
): Change {
  const [, rev, previousText, previousRev] = answer
  const previous = toPrevious(key, previousText, previousRev)
  if (entry) return { type: 'put', entry, ...(previous && { previous }) }
  if (!previous) throw new Error(`the log has a deletion of "${key}" that deleted nothing`)
  return { type: 'delete', key, rev: String(rev), previous }
}

function expectAnswer<K extends ThreadReply[0]>(kind: K, answer: ThreadReply): Extract<ThreadReply, { readonly 0: K }> {
  if (answer[0] !== kind) throw otherKind(answer)
  return answer as Extract<ThreadReply, { readonly 0: K }>
}

/** NaN stands for text that is no revision, and for an invalid key. */
const preconditionsOf = (preconditions: readonly Precondition[]): Preconditions =>
  preconditions.map(({ key, rev }) => [key, isKey(key) ? revNumber(rev) : Number.NaN])

function failedPrecondition(preconditions: readonly Precondition[], answer: ThreadReply): Error {
  const moved = answer[0] === 'moved' && preconditions[answer[1]]
  if (!moved) return otherKind(answer)
  return preconditionFailed(moved, answer[2] === undefined ? undefined : String(answer[2]))
}

const otherKind = (answer: ThreadReply): Error =>
  new Error(`The store thread sent another kind of answer: ${answer[0]}`)
