// How entries stand in etcd: below one prefix, each value in an envelope that names the write that made it, and
// revisions counted from the record that says whose data this is.
import { randomBytes } from 'node:crypto'
import { type KeyValue, prefixRange, type Range, type WatchEvent } from './etcd-protocol.ts'
import type { Change, Entry, Json, Rev } from './store.ts'

/** Of the layout below. A program that knows only smaller numbers refuses the data. */
export const etcdFormat = 1
/** The same behind a shim over an SQL database: keys have none of the characters that mean something to LIKE. */
export const shimFormat = 2

/** Each stands for one character, and sorts like it. The underscore is seen to by shims themselves. */
const escapes: Readonly<Record<string, string>> = { $: '$1', '%': '$2', ']': ']1', '^': ']2' }
const unescapes = Object.fromEntries(Object.entries(escapes).map(([character, code]) => [code, character]))
const escapeKey = (text: string): string => text.replace(/[$%\]^]/g, (character) => escapes[character] ?? character)
const unescapeKey = (text: string): string => text.replace(/[$\]][12]/g, (code) => unescapes[code] ?? code)
const asIs = (text: string): string => text

interface Envelope {
  /** Whose write it is: a writer that lost the answer recognises it. */
  readonly op: string
  readonly value: Json
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
  readonly #data: string
  readonly #notice: (text: string) => void
  /** Revisions of etcd minus revisions of the store. */
  #base = 0
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

  /** What the data say of themselves, and where they are. */
  adopt({ meta, isShim }: { readonly meta: KeyValue; readonly isShim: boolean }, { format, startRev }: Meta): void {
    this.#base = meta.modRevision - startRev
    this.#isShim = isShim
    if (format !== shimFormat) return
    this.#escape = escapeKey
    this.#unescape = unescapeKey
  }

  rev(revision: number): Rev {
    return String(revision - this.#base)
  }

  revision(rev: number): number {
    return rev + this.#base
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
