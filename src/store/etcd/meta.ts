// The record by which data in etcd say whose they are, in which format, and where their revisions begin.

import { StoreError } from '../store.ts'
import { type EtcdCalls, repeatable } from './calls.ts'
import { encodeCreate, type Header, type KeyValue } from './protocol.ts'
import { type Meta, sharedFormat, shimFormat } from './records.ts'

/** A shim has no cluster, and so no identifier of one. */
const isShim = ({ clusterId }: Header): boolean => clusterId === 0

export interface FoundMeta {
  readonly meta: KeyValue
  /** Not older than the record. */
  readonly revision: number
  readonly isShim: boolean
}

/** The record, made where there is none. */
export async function readMeta(calls: EtcdCalls, startRev: number): Promise<FoundMeta> {
  const { metaKey } = calls.layout
  for (;;) {
    const { kvs, header } = await calls.range({ key: metaKey })
    if (kvs[0]) return { meta: kvs[0], revision: header.revision, isShim: isShim(header) }
    const format = isShim(header) ? shimFormat : sharedFormat
    const value = Buffer.from(JSON.stringify({ format, startRev } satisfies Meta))
    // Whoever comes first makes it; the loop reads what there is.
    await calls.txn(encodeCreate(metaKey, value), repeatable)
  }
}

/** What the record says. Throws Newer where this program does not know the format. */
export function knownMeta({ value }: KeyValue, prefix: string): Meta {
  const { format, startRev } = JSON.parse(value.toString()) as Meta
  if (format <= sharedFormat) return { format, startRev }
  throw new StoreError(
    'Newer',
    `the data below /${prefix}/ in etcd has format ${format}, this program knows up to ${sharedFormat}: ` +
      'run the newer svc3 that wrote it, or restore a backup from before the upgrade',
  )
}
