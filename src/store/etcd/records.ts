// How entries are laid out in etcd: below one prefix, each value in an envelope that names the write that made it. A revision
// of the store is a revision of etcd, counted from the record that says whose data this is.
import { randomBytes } from 'node:crypto'
import { revNumber } from '../faults.ts'
import { type Change, type Entry, type Json, type Rev, StoreError } from '../store.ts'
import { type KeyValue, prefixRange, type Range, type WatchEvent } from './protocol.ts'

/** Of the layout below. Data of any other format are refused. */
export const dataFormat = 1
/** Written by builds before the first release: keys escaped for SQL databases, a hundred revisions to one of etcd. */
const formerFormats: readonly number[] = [2, 3]

/** `startRev` is the revision of the store at the write of this record: data that moved here go on counting. */
export interface Meta {
  readonly format: number
  readonly startRev: number
}

interface Envelope {
  /** Whose write it is: a writer that lost the answer recognises it. */
  readonly op: string
  readonly value: Json
}

const writer = randomBytes(9).toString('base64url')
let writes = 0
/** No two writes of any process have the same. */
export const newOperationId = (): string => `${writer}-${(++writes).toString(36)}`

export const seal = (op: string, text: string): Buffer => Buffer.from(`{"op":"${op}","value":${text}}`)

function unseal(value: Buffer): Envelope | undefined {
  try {
    const found: unknown = JSON.parse(value.toString())
    const isOurs = typeof found === 'object' && found !== null && 'op' in found && 'value' in found
    return isOurs ? (found as Envelope) : undefined
  } catch {
    return undefined
  }
}

/** Keys and revisions of one store, in etcd's terms and back. */
export class Layout {
  readonly metaKey: Buffer
  /** Written only to have a new revision. */
  readonly syncKey: Buffer
  /** Everything of this store. */
  readonly all: Range
  readonly #prefix: string
  readonly #data: string
  readonly #notice: (text: string) => void
  /** Add it to a revision of the store for that of etcd. */
  #offset = 0

  constructor(prefix: string, notice: (text: string) => void) {
    this.metaKey = Buffer.from(`/${prefix}/meta`)
    this.syncKey = Buffer.from(`/${prefix}/sync`)
    this.all = prefixRange(`/${prefix}/`)
    this.#prefix = prefix
    this.#data = `/${prefix}/data`
    this.#notice = notice
  }

  /** Takes up what the data say of themselves. Throws Newer for data of another format. */
  adopt({ value, modRevision }: KeyValue): void {
    const { format, startRev } = JSON.parse(value.toString()) as Meta
    if (format !== dataFormat) {
      const advice = formerFormats.includes(format)
        ? 'used before the first release: create a backup with the svc3 that wrote it (svc3 server backup), ' +
          'and restore that into an empty prefix with this one (svc3 server restore)'
        : `this program knows ${dataFormat}: run the newer svc3 that wrote it, or restore a backup from before the upgrade`
      throw new StoreError('Newer', `The data below /${this.#prefix}/ in etcd has format ${format}, ${advice}`)
    }
    this.#offset = modRevision - startRev
  }

  rev(revision: number): Rev {
    return String(revision - this.#offset)
  }

  /** NaN for text that is no revision. */
  revision(rev: Rev): number {
    return revNumber(rev) + this.#offset
  }

  key(key: string): Buffer {
    return Buffer.from(this.#data + key)
  }

  prefix(prefix: string): { readonly key: Buffer; readonly end: Buffer } {
    return prefixRange(this.#data + prefix)
  }

  /** Undefined for what somebody else put there: it is passed over, with a notice. */
  entry(kv: KeyValue): Entry | undefined {
    const envelope = unseal(kv.value)
    if (!envelope) this.#notice(`etcd's key "${kv.key}" has a value that svc3 did not write; ignored`)
    const key = kv.key.slice(this.#data.length)
    return envelope && { key, value: envelope.value, rev: this.rev(kv.modRevision) }
  }

  isWrittenBy(op: string, kv: KeyValue): boolean {
    return unseal(kv.value)?.op === op
  }

  /** Undefined for the store's own records; `gap` when what was there before is needed and gone. */
  change({ kv, isDelete, previous: before }: WatchEvent): Change | 'gap' | undefined {
    if (!kv.key.startsWith(this.#data)) return undefined
    const isFirst = !isDelete && kv.createRevision === kv.modRevision
    if (!isFirst && !before) return 'gap'
    const previous = before && this.entry(before)
    if (isDelete) return previous && { type: 'delete', key: previous.key, rev: this.rev(kv.modRevision), previous }
    const entry = this.entry(kv)
    return entry && { type: 'put', entry, ...(previous && { previous }) }
  }
}
