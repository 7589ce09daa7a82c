// The part of etcd's protocol (version 3) that the store speaks.
import {
  bytesField,
  type FieldValue,
  message,
  messageField,
  numberField,
  presentNumber,
  readFields,
} from '../../platform/protobuf.ts'

export const methods = {
  range: '/etcdserverpb.KV/Range',
  txn: '/etcdserverpb.KV/Txn',
  compact: '/etcdserverpb.KV/Compact',
  watch: '/etcdserverpb.Watch/Watch',
  authenticate: '/etcdserverpb.Auth/Authenticate',
  status: '/etcdserverpb.Maintenance/Status',
  alarm: '/etcdserverpb.Maintenance/Alarm',
} as const

export interface KeyValue {
  readonly key: string
  readonly value: Buffer
  readonly createRevision: number
  readonly modRevision: number
}

interface Header {
  readonly clusterId: number
  readonly revision: number
}

const noBytes = Buffer.alloc(0)

/** The fields of a message by number. A field that is missing or of an unexpected type counts as empty. */
class Fields {
  readonly #values = new Map<number, FieldValue[]>()

  constructor(bytes: Buffer) {
    readFields(bytes, (field, value) => {
      const values = this.#values.get(field)
      if (values) values.push(value)
      else this.#values.set(field, [value])
    })
  }

  has(field: number): boolean {
    return this.#values.has(field)
  }

  number(field: number): number {
    const value = this.#values.get(field)?.at(-1)
    return typeof value === 'number' ? value : 0
  }

  bytes(field: number): Buffer {
    return this.all(field).at(-1) ?? noBytes
  }

  text(field: number): string {
    return this.bytes(field).toString()
  }

  message(field: number): Fields {
    return new Fields(this.bytes(field))
  }

  all(field: number): Buffer[] {
    return (this.#values.get(field) ?? []).filter((value) => typeof value !== 'number')
  }
}

export interface KeyRange {
  readonly key: Buffer
  /** Exclusive. Absent for a range of one key. */
  readonly end?: Buffer | undefined
}

/** The range of all keys with this prefix. UTF-8 has no byte 0xff, so the last byte can be incremented. */
export function prefixRange(prefix: string): { readonly key: Buffer; readonly end: Buffer } {
  const key = Buffer.from(prefix)
  const end = Buffer.from(key)
  end[end.length - 1] = (end.at(-1) ?? 0) + 1
  return { key, end }
}

export interface RangeRequest extends KeyRange {
  readonly limit?: number
  /** Reads the history at this revision. */
  readonly revision?: number | undefined
  readonly keysOnly?: boolean
  readonly countOnly?: boolean
}

const mod = 2

export const encodeRange = ({ key, end, limit, revision, keysOnly, countOnly }: RangeRequest): Buffer =>
  message(
    bytesField(1, key),
    bytesField(2, end),
    numberField(3, limit),
    numberField(4, revision),
    numberField(8, keysOnly),
    numberField(9, countOnly),
  )

const comparison = (key: Buffer, modRevision: number): Buffer =>
  messageField(1, message(numberField(2, mod), bytesField(3, key), presentNumber(6, modRevision)))
const put = (key: Buffer, value: Buffer): Buffer => messageField(2, message(bytesField(1, key), bytesField(2, value)))
const remove = (key: Buffer): Buffer => messageField(3, bytesField(1, key))
const look = (key: Buffer, keysOnly = false): Buffer => messageField(3, messageField(1, encodeRange({ key, keysOnly })))

export interface RevisionCheck {
  readonly key: Buffer
  readonly modRevision: number
}
const comparisons = (preconditions: readonly RevisionCheck[]): Buffer[] =>
  preconditions.map(({ key, modRevision }) => comparison(key, modRevision))
const looks = (preconditions: readonly RevisionCheck[]): Buffer[] => preconditions.map(({ key }) => look(key, true))

/** If a comparison fails and there are preconditions, the response has the same entries as that of `encodeUpdate`. */
export const encodeCreate = (key: Buffer, value: Buffer, preconditions: readonly RevisionCheck[] = []): Buffer =>
  message(
    comparison(key, 0),
    ...comparisons(preconditions),
    messageField(2, put(key, value)),
    ...(preconditions.length > 0 ? [look(key), ...looks(preconditions)] : []),
  )

/** If a comparison fails, the response has the entry of `key` and, without their values, those of the preconditions. */
export const encodeUpdate = (
  key: Buffer,
  value: Buffer,
  modRevision: number,
  preconditions: readonly RevisionCheck[] = [],
): Buffer =>
  message(
    comparison(key, modRevision),
    ...comparisons(preconditions),
    messageField(2, put(key, value)),
    look(key),
    ...looks(preconditions),
  )

export const encodeDelete = (key: Buffer, modRevision: number): Buffer =>
  message(comparison(key, modRevision), messageField(2, remove(key)), look(key))

/** Writes unconditionally. */
export const encodePut = (key: Buffer, value: Buffer): Buffer => messageField(2, put(key, value))

export const encodeCompact = (revision: number): Buffer => numberField(1, revision)

export const encodeAuthenticate = (name: string, password: string): Buffer =>
  message(bytesField(1, name), bytesField(2, password))

export const encodeWatch = ({ key, end }: KeyRange, startRevision: number): Buffer =>
  messageField(
    1,
    message(
      bytesField(1, key),
      bytesField(2, end),
      numberField(3, startRevision),
      // Progress notices, previous values, and large answers in fragments.
      numberField(4, true),
      numberField(6, true),
      numberField(8, true),
    ),
  )

const headerOf = (fields: Fields): Header => ({ clusterId: fields.number(1), revision: fields.number(3) })

function decodeKeyValue(bytes: Buffer): KeyValue {
  const fields = new Fields(bytes)
  return {
    key: fields.text(1),
    value: fields.bytes(5),
    createRevision: fields.number(2),
    modRevision: fields.number(3),
  }
}

export interface RangeResponse {
  readonly header: Header
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
}

export function decodeRange(bytes: Buffer): RangeResponse {
  const fields = new Fields(bytes)
  return { header: headerOf(fields.message(1)), kvs: fields.all(2).map(decodeKeyValue), more: fields.number(3) !== 0 }
}

export interface TxnResponse {
  readonly header: Header
  readonly succeeded: boolean
  /** Present after a failed comparison: the current entry of the key itself, and of each precondition. */
  readonly found: KeyValue | undefined
  readonly foundPreconditions: readonly (KeyValue | undefined)[]
}

export function decodeTxn(bytes: Buffer): TxnResponse {
  const fields = new Fields(bytes)
  const ranges = fields.all(3).flatMap((response) => new Fields(response).all(1))
  const [found, ...foundPreconditions] = ranges.map((range) => decodeRange(range).kvs[0])
  return { header: headerOf(fields.message(1)), succeeded: fields.number(2) !== 0, found, foundPreconditions }
}

export interface EtcdEvent {
  readonly isDelete: boolean
  readonly kv: KeyValue
  readonly previous: KeyValue | undefined
}

interface WatchResponse {
  readonly header: Header
  readonly created: boolean
  readonly canceled: boolean
  /** If not 0, the start revision was compacted, and this is the oldest that is left. */
  readonly compactRevision: number
  readonly cancelReason: string
  readonly events: readonly EtcdEvent[]
}

function decodeEvent(bytes: Buffer): EtcdEvent {
  const fields = new Fields(bytes)
  return {
    isDelete: fields.number(1) === 1,
    kv: decodeKeyValue(fields.bytes(2)),
    previous: fields.has(3) ? decodeKeyValue(fields.bytes(3)) : undefined,
  }
}

export function decodeWatch(bytes: Buffer): WatchResponse {
  const fields = new Fields(bytes)
  return {
    header: headerOf(fields.message(1)),
    created: fields.number(3) !== 0,
    canceled: fields.number(4) !== 0,
    compactRevision: fields.number(5),
    cancelReason: fields.text(6),
    events: fields.all(11).map(decodeEvent),
  }
}

export const decodeToken = (bytes: Buffer): string => new Fields(bytes).text(2)

interface Status {
  readonly header: Header
  readonly version: string
  readonly isLeader: boolean
}

export function decodeStatus(bytes: Buffer): Status {
  const fields = new Fields(bytes)
  const header = fields.message(1)
  const member = header.number(2)
  return {
    header: headerOf(header),
    version: fields.text(2),
    isLeader: member !== 0 && member === fields.number(4),
  }
}

export type Alarm = 'NOSPACE' | 'CORRUPT'
const alarms: Readonly<Record<number, Alarm>> = { 1: 'NOSPACE', 2: 'CORRUPT' }

export const decodeAlarms = (bytes: Buffer): Alarm[] =>
  new Fields(bytes).all(2).flatMap((alarm) => alarms[new Fields(alarm).number(2)] ?? [])
