// How entries are laid out in etcd: below one prefix, each value in an envelope that names the write that made it. A revision
// of the store is a revision of etcd, counted from the record that says whose data this is.
import { randomBytes } from 'node:crypto'
import { recordSum } from '../checksum.ts'
import { damaged, restoreAdvice, revNumber } from '../faults.ts'
import { type Change, type Entry, type Json, type Rev, StoreError } from '../store.ts'
import { type EtcdEvent, type KeyRange, type KeyValue, prefixRange } from './protocol.ts'

/**
 * Of the layout below, and of what the records mean: from 4 on, the records of VMs say what a node has, and an older server
 * would tell agents that their VMs are gone. Data of format 1 become it when they are first opened, and servers that know
 * only 1 stop; any other is refused.
 */
const dataFormat = 4
/** Revisions are counted from the last write of its record, which is the first one, too. */
const upgradedFormat = 1
/** Written by builds before the first release: keys escaped for SQL databases, a hundred revisions to one of etcd. */
const formerFormats: readonly number[] = [2, 3]

/** `startRev` is the revision of the store at the first write of this record: data that moved here go on counting. */
interface Meta {
  readonly format: number
  readonly startRev: number
  /** Not in what older programs wrote. */
  readonly sum?: number
}

export function encodeMeta(startRev: number): Buffer {
  const sum = recordSum([dataFormat, startRev], '')
  return Buffer.from(JSON.stringify({ format: dataFormat, startRev, sum } satisfies Meta))
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

const sumOf = (key: Uint8Array, op: string, value: string | Uint8Array): number =>
  recordSum([Buffer.from(key).toString(), op], value)

/** `key` is etcd's. */
export const encodeRecord = (key: Uint8Array, op: string, text: string): Buffer =>
  Buffer.from(`{"op":"${op}","sum":${sumOf(key, op, text)},"value":${text}}`)

/** All that comes before the value. Records of programs before there were checksums have none, and are read as they are. */
const envelopeHead = /^\{"op":"([^"\\]*)",(?:"sum":(\d+),)?"value":/
const maxHeadBytes = 100

function unseal({ key, value }: Pick<KeyValue, 'key' | 'value'>): Envelope | undefined {
  const found = envelopeHead.exec(value.toString('latin1', 0, maxHeadBytes))
  if (!found || value.at(-1) !== 0x7d) return undefined
  const [head, op = '', sum] = found
  const text = value.subarray(head.length, -1)
  if (sum !== undefined && sumOf(Buffer.from(key), op, text) !== Number(sum)) return undefined
  try {
    return { op, value: JSON.parse(text.toString()) as Json }
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
  readonly all: KeyRange
  readonly #prefix: string
  readonly #data: string
  /** Add it to a revision of the store for that of etcd. */
  #offset = 0

  constructor(prefix: string) {
    this.metaKey = Buffer.from(`/${prefix}/meta`)
    this.syncKey = Buffer.from(`/${prefix}/sync`)
    this.all = prefixRange(`/${prefix}/`)
    this.#prefix = prefix
    this.#data = `/${prefix}/data`
  }

  /** Takes up what the data say of themselves. Throws Newer for data of another format. */
  adopt({ value, createRevision }: KeyValue): void {
    const { format, startRev } = this.#readMeta(value)
    if (format !== dataFormat) {
      const advice = formerFormats.includes(format)
        ? 'used before the first release: create a backup with the svc3 that wrote it (svc3 server backup), ' +
          'and restore that into an empty prefix with this one (svc3 server restore)'
        : `this program knows ${dataFormat}: run the newer svc3 that wrote it, or restore a backup from before the upgrade`
      throw new StoreError('Newer', `The data below /${this.#prefix}/ in etcd has format ${format}, ${advice}`)
    }
    this.#offset = createRevision - startRev
  }

  /** What to write instead of a record of format 1, so that every revision stays what it is; undefined for any other. */
  upgradedMeta({ value, createRevision, modRevision }: KeyValue): Buffer | undefined {
    const { format, startRev } = this.#readMeta(value)
    return format === upgradedFormat ? encodeMeta(startRev - (modRevision - createRevision)) : undefined
  }

  #readMeta(value: Buffer): Meta {
    try {
      const meta = JSON.parse(value.toString()) as Meta
      const isSound = meta.sum === undefined || meta.sum === recordSum([meta.format, meta.startRev], '')
      if (isSound && Number.isSafeInteger(meta.format) && Number.isSafeInteger(meta.startRev)) return meta
    } catch {
      // said below
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

  /** Throws Damaged for what is not as svc3 wrote it. */
  entry(kv: KeyValue): Entry {
    const envelope = unseal(kv)
    if (envelope) return this.#entry(kv, envelope.value)
    throw damaged(kv.key.slice(this.#data.length), `the value of etcd's key "${kv.key}" is not what svc3 wrote`)
  }

  #entry({ key, modRevision }: KeyValue, value: Json): Entry {
    return { key: key.slice(this.#data.length), value, rev: this.rev(modRevision) }
  }

  isWrittenBy(op: string, kv: KeyValue): boolean {
    return unseal(kv)?.op === op
  }

  /**
   * Undefined for the store's own records; `gap` when what was there before is needed, and gone or damaged. Throws Damaged
   * when what is there now is.
   */
  change({ kv, isDelete, previous: before }: EtcdEvent): Change | 'gap' | undefined {
    if (!kv.key.startsWith(this.#data)) return undefined
    const isFirst = !isDelete && kv.createRevision === kv.modRevision
    const known = before && unseal(before)
    const entry = isDelete ? undefined : this.entry(kv)
    if (!isFirst && !known) return 'gap'
    const previous = before && known && this.#entry(before, known.value)
    if (entry) return { type: 'put', entry, ...(previous && { previous }) }
    return previous && { type: 'delete', key: previous.key, rev: this.rev(kv.modRevision), previous }
  }
}
