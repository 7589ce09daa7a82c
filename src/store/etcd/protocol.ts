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

const noHeader: Header = { clusterId: 0, revision: 0 }
const noBytes = Buffer.alloc(0)
/** A field of an unexpected kind counts as empty. */
const asBytes = (value: FieldValue): Buffer => (typeof value === 'number' ? noBytes : value)
const asNumber = (value: FieldValue): number => (typeof value === 'number' ? value : 0)
const asText = (value: FieldValue): string => asBytes(value).toString()

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

/** If a comparison fails, the response has the entry itself and, without their values, those of the preconditions. */
export const encodeCreate = (key: Buffer, value: Buffer, preconditions: readonly RevisionCheck[] = []): Buffer =>
  message(
    comparison(key, 0),
    ...comparisons(preconditions),
    messageField(2, put(key, value)),
    ...(preconditions.length > 0 ? [look(key), ...looks(preconditions)] : []),
  )

/** If a comparison fails, the response is as that of `encodeCreate`. */
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

function decodeHeader(bytes: Buffer): Header {
  let { clusterId, revision } = noHeader
  readFields(bytes, (field, value) => {
    if (field === 1) clusterId = asNumber(value)
    else if (field === 3) revision = asNumber(value)
  })
  return { clusterId, revision }
}

function decodeKeyValue(bytes: Buffer): KeyValue {
  let key = ''
  let value: Buffer = noBytes
  let createRevision = 0
  let modRevision = 0
  readFields(bytes, (field, found) => {
    if (field === 1) key = asText(found)
    else if (field === 2) createRevision = asNumber(found)
    else if (field === 3) modRevision = asNumber(found)
    else if (field === 5) value = asBytes(found)
  })
  return { key, value, createRevision, modRevision }
}

export interface RangeResponse {
  readonly header: Header
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
}

export function decodeRange(bytes: Buffer): RangeResponse {
  let header = noHeader
  let more = false
  const kvs: KeyValue[] = []
  readFields(bytes, (field, value) => {
    if (field === 1) header = decodeHeader(asBytes(value))
    else if (field === 2) kvs.push(decodeKeyValue(asBytes(value)))
    else if (field === 3) more = value !== 0
  })
  return { header, kvs, more }
}

export interface TxnResponse {
  readonly header: Header
  readonly succeeded: boolean
  /** Present after a failed comparison: the current entry of the key itself, and of each precondition. */
  readonly found: KeyValue | undefined
  readonly foundPreconditions: readonly (KeyValue | undefined)[]
}

export function decodeTxn(bytes: Buffer): TxnResponse {
  let header = noHeader
  let succeeded = false
  const looked: (KeyValue | undefined)[] = []
  readFields(bytes, (field, value) => {
    if (field === 1) header = decodeHeader(asBytes(value))
    else if (field === 2) succeeded = value !== 0
    else if (field === 3)
      readFields(asBytes(value), (kind, answer) => {
        if (kind === 1) looked.push(decodeRange(asBytes(answer)).kvs[0])
      })
  })
  const [found, ...foundPreconditions] = looked
  return { header, succeeded, found, foundPreconditions }
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
  let isDelete = false
  let kv: KeyValue | undefined
  let previous: KeyValue | undefined
  readFields(bytes, (field, value) => {
    if (field === 1) isDelete = value === 1
    else if (field === 2) kv = decodeKeyValue(asBytes(value))
    else if (field === 3) previous = decodeKeyValue(asBytes(value))
  })
  return { isDelete, kv: kv ?? decodeKeyValue(noBytes), previous }
}

export function decodeWatch(bytes: Buffer): WatchResponse {
  let header = noHeader
  let created = false
  let canceled = false
  let compactRevision = 0
  let cancelReason = ''
  const events: EtcdEvent[] = []
  readFields(bytes, (field, value) => {
    if (field === 1) header = decodeHeader(asBytes(value))
    else if (field === 3) created = value !== 0
    else if (field === 4) canceled = value !== 0
    else if (field === 5) compactRevision = asNumber(value)
    else if (field === 6) cancelReason = asText(value)
    else if (field === 11) events.push(decodeEvent(asBytes(value)))
  })
  return { header, created, canceled, compactRevision, cancelReason, events }
}

export function decodeToken(bytes: Buffer): string {
  let token = ''
  readFields(bytes, (field, value) => {
    if (field === 2) token = asText(value)
  })
  return token
}

interface Status {
  readonly header: Header
  readonly version: string
  readonly isLeader: boolean
}

export function decodeStatus(bytes: Buffer): Status {
  let header = noHeader
  let version = ''
  let [member, leader] = [0, 0]
  readFields(bytes, (field, value) => {
    if (field === 1) {
      header = decodeHeader(asBytes(value))
      readFields(asBytes(value), (inner, id) => {
        if (inner === 2) member = asNumber(id)
      })
    } else if (field === 2) version = asText(value)
    else if (field === 4) leader = asNumber(value)
  })
  return { header, version, isLeader: member !== 0 && member === leader }
}

export type Alarm = 'NOSPACE' | 'CORRUPT'
const alarms: Readonly<Record<number, Alarm>> = { 1: 'NOSPACE', 2: 'CORRUPT' }

export function decodeAlarms(bytes: Buffer): Alarm[] {
  const found: Alarm[] = []
  readFields(bytes, (field, value) => {
    if (field !== 2) return
    readFields(asBytes(value), (inner, kind) => {
      const alarm = alarms[asNumber(kind)]
      if (inner === 2 && alarm) found.push(alarm)
    })
  })
  return found
}
