// The layout of entries in etcd: below one prefix, with each value in an envelope that names the write. Revisions of
// the store are revisions of etcd with an offset, which the meta record determines.
import { randomBytes } from 'node:crypto'
import { recordSum } from '../checksum.ts'
import { damaged, otherFormat, restoreAdvice, revNumber } from '../faults.ts'
import { type Change, type Entry, type Json, type Rev, StoreError } from '../store.ts'
import { type EtcdEvent, type KeyRange, type KeyValue, prefixRange } from './protocol.ts'

/** The version of the layout and of the meaning of records. Other formats are refused. */
const dataFormat = 4

/**
 * `startRev` is the revision of the store at the first write of this record. It keeps the revisions of data that were
 * moved here from going back.
 */
interface Meta {
  readonly format: number
  readonly startRev: number
  /** Absent in records of older programs. */
  readonly sum?: number
}

export function encodeMeta(startRev: number): Buffer {
  const sum = recordSum([dataFormat, startRev], '')
  return Buffer.from(JSON.stringify({ format: dataFormat, startRev, sum } satisfies Meta))
}

interface Envelope {
  /** The id of the write, by which a writer recognises its own record. */
  readonly op: string
  readonly value: Json
  /** The length of the value. */
  readonly bytes: number
}

const writer = randomBytes(9).toString('base64url')
let writes = 0
/** Unique across processes. */
export const newOperationId = (): string => `${writer}-${(++writes).toString(36)}`

const sumOf = (key: Uint8Array, op: string, value: string | Uint8Array): number =>
  recordSum([Buffer.from(key).toString(), op], value)

/** `key` is the key in etcd. */
export const encodeRecord = (key: Uint8Array, op: string, text: string): Buffer =>
  Buffer.from(`{"op":"${op}","sum":${sumOf(key, op, text)},"value":${text}}`)

/** Everything before the value. Old records have no checksum. */
const envelopeHead = /^\{"op":"([^"\\]*)",(?:"sum":(\d+),)?"value":/
const maxHeadBytes = 100

function unseal({ key, value }: Pick<KeyValue, 'key' | 'value'>): Envelope | undefined {
  const found = envelopeHead.exec(value.toString('latin1', 0, maxHeadBytes))
  if (!found || value.at(-1) !== 0x7d) return undefined
  const [head, op = '', sum] = found
  const text = value.subarray(head.length, -1)
  if (sum !== undefined && sumOf(Buffer.from(key), op, text) !== Number(sum)) return undefined
  try {
    return { op, value: JSON.parse(text.toString()) as Json, bytes: text.length }
  } catch {
    return undefined
  }
}

/** Converts keys and revisions between the store and etcd. */
export class Layout {
  readonly metaKey: Buffer
  /** Written only to get a new revision. */
  readonly syncKey: Buffer
  readonly all: KeyRange
  readonly #prefix: string
  readonly #data: string
  /** The difference between revisions of etcd and of the store. */
  #offset = 0

  constructor(prefix: string) {
    this.metaKey = Buffer.from(`/${prefix}/meta`)
    this.syncKey = Buffer.from(`/${prefix}/sync`)
    this.all = prefixRange(`/${prefix}/`)
    this.#prefix = prefix
    this.#data = `/${prefix}/data`
  }

  /** Reads the meta record. Throws OtherFormat for data of another format. */
  adopt({ value, createRevision }: KeyValue): void {
    const { format, startRev } = this.#readMeta(value)
    if (format !== dataFormat) throw otherFormat(`below /${this.#prefix}/ in etcd`, format, dataFormat)
    this.#offset = createRevision - startRev
  }

  #readMeta(value: Buffer): Meta {
    try {
      const meta = JSON.parse(value.toString()) as Meta
      const isSound = meta.sum === undefined || meta.sum === recordSum([meta.format, meta.startRev], '')
      if (isSound && Number.isSafeInteger(meta.format) && Number.isSafeInteger(meta.startRev)) return meta
    } catch {
      // The error below covers this.
    }
    throw new StoreError('Damaged', `etcd's key "${this.metaKey}" is damaged: ${restoreAdvice} --store NEW-PREFIX`)
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

  /** Throws Damaged for a value that svc3 did not write. */
  entry(kv: KeyValue): Entry {
    const envelope = unseal(kv)
    if (envelope) return this.#entry(kv, envelope)
    throw damaged(kv.key.slice(this.#data.length), `the value of etcd's key "${kv.key}" is not what svc3 wrote`)
  }

  #entry({ key, modRevision }: KeyValue, { value, bytes }: Envelope): Entry {
    return { key: key.slice(this.#data.length), value, rev: this.rev(modRevision), bytes }
  }

  isWrittenBy(op: string, kv: KeyValue): boolean {
    return unseal(kv)?.op === op
  }

  /**
   * Returns undefined for records of the layout itself, and `gap` if the previous value is needed but compacted or
   * damaged. Throws Damaged if the current value is damaged.
   */
  change({ kv, isDelete, previous: before }: EtcdEvent): Change | 'gap' | undefined {
    if (!kv.key.startsWith(this.#data)) return undefined
    const isFirst = !isDelete && kv.createRevision === kv.modRevision
    const known = before && unseal(before)
    const entry = isDelete ? undefined : this.entry(kv)
    if (!isFirst && !known) return 'gap'
    const previous = before && known && this.#entry(before, known)
    if (entry) return { type: 'put', entry, ...(previous && { previous }) }
    return previous && { type: 'delete', key: previous.key, rev: this.rev(kv.modRevision), previous }
  }
}
