// Resumable uploads on the server's disk: a small file with the metadata, and a file with the bytes so far, whose size
// is the progress. There is no other state, so uploads survive a restart of the server.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ApiError } from '../../api/errors.ts'
import type { UploadInput } from '../../api/images/uploads.ts'
import { DiskFullError, explainFull, roomOn } from '../../images/content/temporary-files.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { ifAbsent, readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import { hasExpired } from '../../rules/retention.ts'
import { sizeText } from '../../rules/sizes.ts'
import { whileRoom, writePieces } from './write-pieces.ts'

export interface PartialUpload extends UploadInput {
  readonly id: string
  /** The key of the owner. No other caller has access. */
  readonly caller: string
  readonly namespace: string
  readonly updatedAt: string
  /** The image or ISO exists. The metadata stays for clients that missed the response. */
  readonly isDone?: boolean
}

export interface Incoming {
  readonly pieces: AsyncIterable<Buffer>
  cancel(): void
}

/** If a caller has more, the oldest without a connection are removed. */
const maxPerCaller = 20
/** The part of the free disk space that unfinished uploads of one caller, or of one namespace, may have together. */
const shareOfRoom = 3 / 4
/** After this time without new bytes, no disk space is reserved for the rest of an upload. */
const reservedMs = 5 * 60_000
const idPattern = /^[0-9a-f]{32}$/

export class PartialUploads {
  readonly #folder: string
  readonly #clock: Clock
  readonly #writers = new Map<string, { cancel(): void; readonly done: Promise<unknown> }>()
  #begun: Promise<unknown> = Promise.resolve()

  constructor(folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
  }

  /** A client that repeats the request gets the same upload. */
  static idOf(caller: string, namespace: string, { kind, name, size, key }: UploadInput): string {
    const parts = [caller, namespace, kind, name, size, key]
    return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
  }

  /** Returns the ids of uploads of the caller that it removed to make room. */
  begin(upload: Omit<PartialUpload, 'updatedAt'>): Promise<readonly string[]> {
    // One at a time, because each counts what the others have begun.
    const begun = this.#begun.then(() => this.#begin(upload))
    this.#begun = begun.catch(() => undefined)
    return begun
  }

  async #begin(upload: Omit<PartialUpload, 'updatedAt'>): Promise<readonly string[]> {
    const all = (await this.list()).filter(({ id }) => id !== upload.id)
    const surplus = all.filter(({ caller }) => caller === upload.caller).length - (maxPerCaller - 1)
    const idle = all.filter(({ caller, id }) => caller === upload.caller && !this.#writers.has(id))
    const oldest = idle.toSorted((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1)).slice(0, Math.max(0, surplus))
    if (oldest.length < surplus) throw tooMany(`${maxPerCaller} uploads of this caller are in progress`)
    const others = all.filter((each) => !oldest.includes(each))
    await this.#checkRoom(upload, others)
    for (const { id } of oldest) await this.remove(id)
    await fs.rm(this.file(upload.id), { force: true })
    await this.#write(upload)
    return oldest.map(({ id }) => id)
  }

  async find(id: string, caller: string): Promise<PartialUpload | undefined> {
    const text = idPattern.test(id) ? await readFileIfPresent(this.#metadataFile(id)) : undefined
    const upload = text === undefined ? undefined : (JSON.parse(text) as PartialUpload)
    return upload?.caller === caller ? upload : undefined
  }

  async offset(id: string): Promise<number> {
    return (await fs.stat(this.file(id)).catch(ifAbsent(undefined)))?.size ?? 0
  }

  /** Ends an earlier writer, appends at `offset` and returns the new end; `elsewhere` if the end is not `offset`. */
  async append(upload: PartialUpload, offset: number, { pieces, cancel }: Incoming): Promise<number | 'elsewhere'> {
    for (let other = this.#writers.get(upload.id); other; other = this.#writers.get(upload.id)) {
      other.cancel()
      await other.done
    }
    const { promise: done, resolve } = Promise.withResolvers<void>()
    this.#writers.set(upload.id, { cancel, done })
    try {
      if ((await this.offset(upload.id)) !== offset) return 'elsewhere'
      return await this.#append(upload, offset, pieces)
    } catch (error) {
      throw explainFull(error, 'the server')
    } finally {
      // Written while others still wait for this writer, so that a removed upload does not come back.
      await this.#write(upload).catch(() => undefined)
      this.#writers.delete(upload.id)
      resolve()
    }
  }

  async #append({ id, size }: PartialUpload, offset: number, pieces: AsyncIterable<Buffer>): Promise<number> {
    await using handle = await fs.open(this.file(id), fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600)
    try {
      return await writePieces(handle, whileRoom(this.#folder, pieces), offset, (end) => {
        if (end > size) throw new RangeError('more bytes than announced')
        if (end > size / 2) failpoint('upload.half')
      })
    } finally {
      await handle.sync()
    }
  }

  /** Removes the bytes and keeps the metadata. */
  async finish(upload: PartialUpload): Promise<void> {
    await this.#write({ ...upload, isDone: true })
    await fs.rm(this.file(upload.id), { force: true })
  }

  async remove(id: string): Promise<void> {
    const writer = this.#writers.get(id)
    writer?.cancel()
    await writer?.done
    await fs.rm(this.#metadataFile(id), { force: true })
    await fs.rm(this.file(id), { force: true })
  }

  async list(): Promise<PartialUpload[]> {
    const found: PartialUpload[] = []
    for (const name of await fs.readdir(this.#folder)) {
      const id = /^upload-(\w+)\.json$/.exec(name)?.[1]
      const text = id === undefined ? undefined : await readFileIfPresent(path.join(this.#folder, name))
      if (text !== undefined) found.push(JSON.parse(text) as PartialUpload)
    }
    return found
  }

  /** Removes uploads without new bytes for a day, and files without metadata. Returns the number of uploads. */
  async expire(): Promise<number> {
    const now = timestamp(this.#clock.now())
    const all = await this.list()
    const old = all.filter(({ id, updatedAt }) => !this.#writers.has(id) && hasExpired('upload', updatedAt, now))
    for (const { id } of old) await this.remove(id)
    const known = new Set(all.map(({ id }) => `upload-${id}`))
    for (const name of await fs.readdir(this.#folder))
      if (/^upload-\w+$/.test(name) && !known.has(name)) await fs.rm(path.join(this.#folder, name), { force: true })
    return old.length
  }

  file(id: string): string {
    return path.join(this.#folder, `upload-${id}`)
  }

  #metadataFile(id: string): string {
    return `${this.file(id)}.json`
  }

  #write(upload: Omit<PartialUpload, 'updatedAt'>): Promise<void> {
    const metadata = { ...upload, updatedAt: timestamp(this.#clock.now()) }
    return writeFileAtomically(this.#metadataFile(upload.id), JSON.stringify(metadata))
  }

  /**
   * Refuses an upload that does not fit on the disk with all others that progress, or that leaves others too little.
   * Stalled ones do not reserve space for their rest.
   */
  async #checkRoom(
    { size, caller, namespace }: Omit<PartialUpload, 'updatedAt'>,
    others: PartialUpload[],
  ): Promise<void> {
    const sinceMs = this.#clock.now().getTime() - reservedMs
    const unfinished = await Promise.all(
      others
        .filter(({ isDone }) => !isDone)
        .map(async (other) => {
          const received = await this.offset(other.id)
          const isMoving = this.#writers.has(other.id) || Date.parse(other.updatedAt) >= sinceMs
          return { ...other, received, awaited: isMoving ? other.size - received : 0 }
        }),
    )
    const room = await roomOn(this.#folder)
    if (size + sumOf(unfinished, 'awaited') > room) throw new DiskFullError('the server', undefined)
    for (const [owner, theirs] of [
      ['caller', unfinished.filter((each) => each.caller === caller)],
      ['namespace', unfinished.filter((each) => each.namespace === namespace)],
    ] as const) {
      const received = sumOf(theirs, 'received')
      const bytes = size + received + sumOf(theirs, 'awaited')
      // A single upload may have all of it.
      if (theirs.length > 0 && bytes > (room + received) * shareOfRoom)
        throw tooMany(`Unfinished uploads of this ${owner} would have ${sizeText(bytes)}`)
    }
  }
}

const sumOf = <K extends string>(all: readonly Readonly<Record<K, number>>[], field: K): number =>
  all.reduce((sum, each) => sum + each[field], 0)

const tooMany = (message: string): ApiError =>
  new ApiError('RequestEntityTooLarge', message, {
    hint: 'Finish or cancel another upload first; an interrupted one expires after a day',
  })
