// The quota of a namespace: one record with its limits and, by uid, what VMs use of them. Because it is one record, a
// compare-and-set enforces the limits; because it lists uids and keeps no sum, nothing is counted twice.
import type { Stored } from '../shares.ts'
import type { Entry } from '../store.ts'
import type { Collections } from './collections.ts'
import type { QuotaRecord } from './fleet-records.ts'

type Quotas = Pick<Collections, 'quotas'>

const name = 'quota'
export const quotaKey = ({ quotas }: Quotas, namespace: string): string => quotas.key(namespace, name)
export const quotaOf = ({ quotas }: Quotas, namespace: string): Entry<QuotaRecord> | undefined =>
  quotas.get(namespace, name)

/** The limits of each kind of record, unless an administrator has set others. Ten thousand VMs take a third of the bytes. */
export const defaultRecordLimits: Stored = { records: 20_000, bytes: 32 * 1_048_576 }

/** What a namespace may store of each kind. */
export const recordLimitsOf = (records: Quotas, namespace: string): Stored => ({
  ...defaultRecordLimits,
  ...quotaOf(records, namespace)?.value.records,
})

/** Releases what a VM uses of the quota. Writes nothing if there is none. */
export async function releaseQuota(records: Quotas, namespace: string, uid: string): Promise<void> {
  if (!quotaOf(records, namespace)?.value.used[uid]) return
  await records.quotas.change(quotaKey(records, namespace), (record) => {
    const { [uid]: left, ...used } = record?.used ?? {}
    return record && left && { ...record, used }
  })
}
