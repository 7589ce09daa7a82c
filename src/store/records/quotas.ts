// The quota of a namespace in the store: one record with its limits and, by uid, what VMs take of them. Being one key, a
// compare-and-set holds the limits whoever writes; being no counter, nothing is credited or charged twice.
import type { Entry } from '../store.ts'
import type { Collections } from './collections.ts'
import type { QuotaRecord } from './fleet-records.ts'

type Quotas = Pick<Collections, 'quotas'>

/** One per namespace. */
const name = 'quota'
export const quotaKey = ({ quotas }: Quotas, namespace: string): string => quotas.key(namespace, name)
export const quotaOf = ({ quotas }: Quotas, namespace: string): Entry<QuotaRecord> | undefined =>
  quotas.get(namespace, name)

/** Gives back what a VM has of the quota. Without a quota nothing is written. */
export async function releaseQuota(records: Quotas, namespace: string, uid: string): Promise<void> {
  if (!quotaOf(records, namespace)?.value.used[uid]) return
  await records.quotas.change(quotaKey(records, namespace), (record) => record && without(record, new Set([uid])))
}

function without(record: QuotaRecord, uids: ReadonlySet<string>): QuotaRecord | undefined {
  const kept = Object.entries(record.used).filter(([uid]) => !uids.has(uid))
  return kept.length < Object.keys(record.used).length ? { ...record, used: Object.fromEntries(kept) } : undefined
}
