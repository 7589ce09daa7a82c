// Reserves a share of the quota before a VM is created, for requests that do not wait for the quota.
import { ApiError } from '../../api/errors.ts'
import { type Amounts, admit, excessText, isLimited } from '../../rules/queue/quota.ts'
import { amountsOn } from '../../rules/queue/shares.ts'
import { automaticMemoryMiB } from '../../rules/sizes.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { quotaKey, quotaOf } from '../../store/records/quotas.ts'

/**
 * Reserves by one compare-and-set, or refuses. If the server crashes before the VM is created, the next sweep releases
 * the share.
 */
export async function takeQuota(collections: Collections, vm: VmRecord): Promise<void> {
  const { namespace, uid, name } = vm
  if (!isLimited(quotaOf(collections, namespace)?.value.limits ?? {})) return
  const amounts = maxAmounts(collections, vm)
  await collections.quotas.change(quotaKey(collections, namespace), (record) => {
    if (!record) return undefined
    const { used, refused } = admit(record, [[uid, amounts]])
    const excess = refused.get(uid)
    if (excess)
      throw new ApiError('Forbidden', `Forbidden: ${excessText(namespace, excess)}`, {
        kind: 'vms',
        name,
        hint: `Delete a VM, or deploy without --on-quota refuse (onQuota=refuse) to wait. Run svc3 quota show -n ${namespace} to see what is in use`,
      })
    return used && { ...record, used }
  })
}

/** Why a VM of these amounts would have to wait for the quota now. */
export function quotaExcess(collections: Collections, namespace: string, amounts: Amounts): string | undefined {
  const record = quotaOf(collections, namespace)?.value
  const excess = record && admit(record, [['', amounts]]).refused.get('')
  return excess && excessText(namespace, excess)
}

/**
 * The cores and memory that the VM would take at most on a node of its namespace. The scheduler later writes the exact
 * amounts.
 */
function maxAmounts({ nodes }: Collections, { namespace, shape: { cpu, memoryMiB }, os }: VmRecord): Amounts {
  const own = nodes.list().flatMap(({ value }) => (value.namespace === namespace ? (value.report ?? []) : []))
  const most = Math.max(0, ...own.map((report) => automaticMemoryMiB(cpu, report)))
  const mac = own.find(({ maxMacosVms }) => maxMacosVms !== undefined)
  return amountsOn(mac, { cpu, memoryMiB: memoryMiB === 0 ? most : memoryMiB, os })
}
