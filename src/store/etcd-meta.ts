// The record by which data in etcd say whose they are, in which format, and where their revisions begin.
import { type EtcdCalls, repeatable } from './etcd-calls.ts'
import { encodeCreate, type KeyValue } from './etcd-protocol.ts'
import { etcdFormat, type Meta } from './etcd-records.ts'

/** The record, made where there is none; and a revision that is not older. */
export async function readMeta(calls: EtcdCalls, startRev: number): Promise<{ meta: KeyValue; revision: number }> {
  const { metaKey } = calls.layout
  for (;;) {
    const { kvs, header } = await calls.range({ key: metaKey })
    if (kvs[0]) return { meta: kvs[0], revision: header.revision }
    const value = Buffer.from(JSON.stringify({ format: etcdFormat, startRev } satisfies Meta))
    // Whoever comes first makes it; the loop reads what there is.
    await calls.txn(encodeCreate(metaKey, value), repeatable)
  }
}
