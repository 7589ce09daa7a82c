// The typed calls to etcd that the store makes, with their deadlines and retries.

import { compacted } from '../faults.ts'
import { type Rev, StoreError } from '../store.ts'
import { type EtcdCallOptions, type EtcdClient, EtcdFailure } from './client.ts'
import { storeFault } from './faults.ts'
import {
  type Alarm,
  decodeAlarms,
  decodeRange,
  decodeTxn,
  encodeCompact,
  encodeCreate,
  encodePut,
  encodeRange,
  type KeyValue,
  methods,
  type RangeRequest,
  type RangeResponse,
  type TxnResponse,
} from './protocol.ts'
import { encodeMeta, encodeRecord, type Layout, newOperationId } from './records.ts'
import { grpc } from './verdict.ts'

/** Calls that are safe to repeat have short deadlines. */
export const repeatableOptions: EtcdCallOptions = { isRepeatable: true, tryMs: 1_000 }
export const pagingOptions: EtcdCallOptions = { isRepeatable: true, tryMs: 5_000 }
/**
 * A create is tried once. Otherwise a paused member could carry out the first try long after the second one succeeded
 * and its record was deleted, and so recreate that record.
 */
export const createOptions: EtcdCallOptions = { isRepeatable: false, tryMs: 2_000 }
/** For calls whose caller has already waited for some time. */
export const lookupOptions: EtcdCallOptions = { isRepeatable: true, tryMs: 1_000, timeoutMs: 2_500 }
export const checkOptions: EtcdCallOptions = { isRepeatable: true, tryMs: 1_000, timeoutMs: 2_000, isUrgent: true }

/** Replacements of etcd on SQL databases deliver changes late, and not in the order of their revisions. */
const notEtcd = (): StoreError =>
  new StoreError('Unavailable', 'This is not etcd but a replacement such as kine: use etcd, or sqlite: on one machine')

export const isOutOfRange = (error: unknown): boolean => error instanceof EtcdFailure && error.code === grpc.outOfRange

export class EtcdCalls {
  readonly client: EtcdClient
  readonly layout: Layout

  constructor(client: EtcdClient, layout: Layout) {
    this.client = client
    this.layout = layout
  }

  async range(
    request: RangeRequest,
    options: EtcdCallOptions = repeatableOptions,
  ): Promise<RangeResponse & { bytes: number }> {
    const { bytes } = await this.client.call(methods.range, encodeRange(request), options)
    return { ...decodeRange(bytes), bytes: bytes.length }
  }

  async txn(request: Buffer, options: EtcdCallOptions): Promise<{ txn: TxnResponse; perhapsBefore: boolean }> {
    const { bytes, perhapsBefore } = await this.client.call(methods.txn, request, options)
    return { txn: decodeTxn(bytes), perhapsBefore }
  }

  async find(
    key: string,
    revision?: number,
    options: EtcdCallOptions = repeatableOptions,
  ): Promise<KeyValue | undefined> {
    return (await this.range({ key: this.layout.key(key), revision }, options)).kvs[0]
  }

  async newest(options: EtcdCallOptions = repeatableOptions): Promise<number> {
    return (await this.range({ key: this.layout.metaKey, countOnly: true }, options)).header.revision
  }

  /**
   * Throws Compacted unless `revision` is in etcd's history; `rev` is the same revision for the message. A watch cannot
   * check this: etcd still delivers the change of the compacted revision, without its previous value.
   */
  async assertKept(revision: number, rev: Rev): Promise<void> {
    try {
      await this.range({ key: this.layout.metaKey, revision, countOnly: true })
    } catch (error) {
      throw isOutOfRange(error) ? compacted(rev) : storeFault(error, 'the past', false)
    }
  }

  async compact(revision: number): Promise<void> {
    await this.client.call(methods.compact, encodeCompact(revision), repeatableOptions).catch((error: unknown) => {
      if (!isOutOfRange(error)) throw error
    })
  }

  /** Writes a meaningless change and returns its revision, which follows all earlier ones. */
  async sync(): Promise<number> {
    const { syncKey } = this.layout
    const { txn } = await this.txn(
      encodePut(syncKey, encodeRecord(syncKey, newOperationId(), 'null')),
      repeatableOptions,
    )
    return txn.header.revision
  }

  /**
   * Returns the record that identifies the data, after creating it if needed, and a revision from which a watch does not
   * deliver that write.
   */
  async meta(startRev: number): Promise<{ readonly meta: KeyValue; readonly revision: number }> {
    const { metaKey } = this.layout
    for (;;) {
      const { kvs, header } = await this.range({ key: metaKey })
      if (header.clusterId === 0) throw notEtcd()
      const [meta] = kvs
      if (meta) return { meta, revision: header.revision }
      // Another server may write it first; the loop then reads it.
      await this.txn(encodeCreate(metaKey, encodeMeta(startRev)), repeatableOptions)
    }
  }

  async alarms(): Promise<readonly Alarm[]> {
    try {
      return decodeAlarms((await this.client.call(methods.alarm, Buffer.alloc(0), checkOptions)).bytes)
    } catch {
      // The user may lack the permission.
      return []
    }
  }
}
