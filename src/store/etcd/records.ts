// How entries stand in etcd: below one prefix, each value in an envelope that names the write that made it, and
// revisions counted from the record that says whose data this is.
import { randomBytes } from 'node:crypto'
import { revNumber } from '../faults.ts'
import type { Change, Entry, Json, Rev } from '../store.ts'
import { type KeyValue, prefixRange, type Range, type WatchEvent } from './protocol.ts'

/**
 * Of the layout below. A program that knows only smaller numbers refuses the data. Data that were begun with the first one
 * keep it: each of their writes is a revision of etcd.
 */
export const firstFormat = 1
/** The same behind a shim over an SQL database: keys have none of the characters that mean something to LIKE. */
export const shimFormat = 2
/** A revision of etcd may hold several writes, and stands for as many of ours as there are places in it. */
export const sharedFormat = 3
/** More than are ever written together; the last is for what is written alone. */
const sharedPlaces = 100

/** Each stands for one character, and sorts like it. The underscore is seen to by shims themselves. */
const escapes: Readonly<Record<string, string>> = { $: '$1', '%': '$2', ']': ']1', '^': ']2' }
const unescapes = Object.fromEntries(Object.entries(escapes).map(([character, code]) => [code, character]))
const escapeKey = (text: string): string => text.replace(/[$%\]^]/g, (character) => escapes[character] ?? character)
const unescapeKey = (text: string): string => text.replace(/[$\]][12]/g, (code) => unescapes[code] ?? code)
const asIs = (text: string): string => text

interface Envelope {
  /** Whose write it is: a writer that lost the answer recognises it. */
  readonly op: string
  /** Among those that were written together; without it, it was written alone. */
  readonly place?: number
  readonly value: Json
}

/** Where a write stands: a revision of etcd, and a place in it where it shares that with others. */
export interface Standing {
  readonly revision: number
  readonly place?: number | undefined
}

/** `startRev` is the revision of the store at the write of this record: data that moved here go on counting. */
export interface Meta {
  readonly format: number
  readonly startRev: number
}

const writer = randomBytes(9).toString('base64url')
let writes = 0
/** No two writes of any process have the same. */
export const newOperationId = (): string => `${writer}-${(++writes).toString(36)}`

export const seal = (op: string, text: string, place?: number): Buffer =>
  Buffer.from(`{"op":"${op}",${place === undefined ? '' : `"place":${place},`}"value":${text}}`)

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
  readonly #data: string
  readonly #notice: (text: string) => void
  /** The revision of etcd that made the record of what this is, and the one of the store that it stands for. */
  #first = 0
  #startRev = 0
  /** In every revision of etcd. */
  #places = 1
  #isShim = false
  #escape = asIs
  #unescape = asIs

  constructor(prefix: string, notice: (text: string) => void) {
    this.metaKey = Buffer.from(`/${prefix}/meta`)
    this.syncKey = Buffer.from(`/${prefix}/sync`)
    this.all = prefixRange(`/${prefix}/`)
    this.#data = `/${prefix}/data`
    this.#notice = notice
  }

  /** Something else stands in for etcd: it shows changes late, and in another order than it numbers them. */
  get isShim(): boolean {
    return this.#isShim
  }

  /** Several writes may share a revision of etcd. */
  get isShared(): boolean {
    return this.#places > 1 && !this.#isShim
  }

  /** What the data say of themselves, and where they are. */
  adopt({ meta, isShim }: { readonly meta: KeyValue; readonly isShim: boolean }, { format, startRev }: Meta): void {
    this.#first = meta.modRevision
    this.#startRev = startRev
    this.#isShim = isShim
    if (format === sharedFormat) this.#places = sharedPlaces
    if (format !== shimFormat) return
    this.#escape = escapeKey
    this.#unescape = unescapeKey
  }

  /** Of a write; without a place, of everything up to this revision of etcd. */
  rev(revision: number, place = this.#places - 1): Rev {
    return String((revision - this.#first - 1) * this.#places + 1 + place + this.#startRev)
  }

  /** The last revision of etcd of which nothing is later. */
  passed(rev: Rev): number {
    return this.#first + Math.floor((revNumber(rev) - this.#startRev) / this.#places)
  }

  /** The revision of etcd that it is a part of. */
  holding(rev: Rev): number {
    return this.#first + Math.ceil((revNumber(rev) - this.#startRev) / this.#places)
  }

  key(key: string): Buffer {
    return Buffer.from(this.#data + this.#escape(key))
  }

  /**
   * All keys of a prefix are there, from the first on; `isBelow` ends them. The range ends where the folder does that the
   * prefix is in: shims know no other.
   */
  prefix(prefix: string): { readonly key: Buffer; readonly end: Buffer; isBelow(kv: KeyValue): boolean } {
    const text = this.#data + this.#escape(prefix)
    const { end } = prefixRange(text.slice(0, text.lastIndexOf('/') + 1))
    return { key: Buffer.from(text), end, isBelow: ({ key }) => key.startsWith(text) }
  }

  /** Undefined for what somebody else put there: it is passed over, and told. */
  entry(kv: KeyValue): Entry | undefined {
    const envelope = unseal(kv.value)
    if (!envelope) this.#notice(`etcd's key "${kv.key}" has a value that svc3 did not write: it is passed over`)
    const key = this.#unescape(kv.key.slice(this.#data.length))
    return envelope && { key, value: envelope.value, rev: this.rev(kv.modRevision, envelope.place) }
  }

  /** Where what is there was written. */
  standing({ value, modRevision }: KeyValue): Standing {
    return { revision: modRevision, place: unseal(value)?.place }
  }

  revOf(kv: KeyValue): Rev {
    const { revision, place } = this.standing(kv)
    return this.rev(revision, place)
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
