// How full a quota is, and the request that changes it.
import { type Quota, type QuotaInput, quotaLimits } from '../../../src/api/vms/quotas.ts'
import { memorySize } from '../../../src/rules/sizes.ts'

export const quotaNames = quotaLimits
type Name = (typeof quotaNames)[number]
/** What the form has. Limits of records always have a value. */
export const fieldNames = [...quotaNames, 'records', 'recordSize'] as const
type Limits = { readonly [name in (typeof fieldNames)[number]]: string }

export function amountText(name: Name, value: number | undefined): string | undefined {
  if (value === undefined) return undefined
  return name === 'memory' ? memorySize(value * 1_024) : String(value)
}

export function usedText(name: Name, { used, limits }: Quota): string {
  const limit = amountText(name, limits[name])
  const amount = amountText(name, used[name]) ?? ''
  return limit === undefined ? amount : `${amount} of ${limit}`
}

/** VMs wait if one of the limits is reached. */
export function quotaState({ used, limits, owners }: Quota) {
  if (quotaNames.every((name) => limits[name] === undefined)) return { tone: 'idle', word: 'No limits' } as const
  const isFull = quotaNames.some((name) => used[name] >= (limits[name] ?? Number.POSITIVE_INFINITY))
  if (!isFull) return { tone: 'good', word: 'Room left' } as const
  return owners.some(({ waiting }) => waiting > 0)
    ? ({ tone: 'warn', word: 'VMs waiting' } as const)
    : ({ tone: 'idle', word: 'Full' } as const)
}

export const limitsOf = ({ limits }: Quota): Limits =>
  Object.fromEntries(fieldNames.map((name) => [name, String(limits[name] ?? '')])) as Limits

/** Returns the changed limits. An empty field removes its limit, except those of records, which it leaves unchanged. */
export function limitsBody(form: Limits, before: Limits): QuotaInput {
  const changed = fieldNames.filter((name) => form[name].trim() !== before[name])
  const removed = quotaNames.filter((name) => changed.includes(name) && form[name].trim() === '')
  const set = changed.filter((name) => form[name].trim() !== '')
  return {
    ...Object.fromEntries(set.map((name) => [name, Number(form[name])])),
    ...(removed.length > 0 && { unlimited: removed }),
  }
}
