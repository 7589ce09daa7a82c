// The quota of a namespace: what its VMs use, by uid, and which VMs are admitted. Callers write the result by one
// compare-and-set. No sum is kept, so that a repeated write changes nothing.
import type { Demand } from '../placement.ts'
import { memorySize } from '../sizes.ts'

export interface Amounts {
  readonly cpu: number
  readonly memoryMiB: number
  /** Seats of macOS VMs, whose number per host Apple limits. */
  readonly macos: number
}
export interface Totals extends Amounts {
  readonly vms: number
}
type Resource = keyof Totals
/** Resources that are not named are unlimited. */
export type ResourceLimits = { readonly [R in Resource]?: number | undefined }
/** By uid. In short form, because one record may have thousands of them. */
export type UsageByVm = Readonly<Record<string, readonly [cpu: number, memoryMiB: number, macos: number]>>

interface Quota {
  readonly limits: ResourceLimits
  readonly used: UsageByVm
}

interface Excess {
  readonly resource: Resource
  readonly limit: number
  readonly used: number
  readonly requested: number
}

export const nothing: Totals = { vms: 0, cpu: 0, memoryMiB: 0, macos: 0 }

export const plus = (sum: Totals, { cpu, memoryMiB, macos }: Amounts): Totals => ({
  vms: sum.vms + 1,
  cpu: sum.cpu + cpu,
  memoryMiB: sum.memoryMiB + memoryMiB,
  macos: sum.macos + macos,
})

export function totalOf(used: UsageByVm): Totals {
  let [vms, cpu, memoryMiB, macos] = [0, 0, 0, 0]
  for (const uid in used) {
    const [cores, mebibytes, seats] = used[uid] as UsageByVm[string]
    vms += 1
    cpu += cores
    memoryMiB += mebibytes
    macos += seats
  }
  return { vms, cpu, memoryMiB, macos }
}

export const taken = ({ cpu, memoryMiB, macos }: Amounts): UsageByVm[string] => [cpu, memoryMiB, macos]

/** The first limit that these amounts would exceed. */
export function firstExcess(limits: ResourceLimits, used: Totals, amounts: Amounts): Excess | undefined {
  for (const resource of resources) {
    const limit = limits[resource]
    if (limit === undefined) continue
    const requested = resource === 'vms' ? 1 : amounts[resource]
    if (requested > 0 && used[resource] + requested > limit) return { resource, limit, used: used[resource], requested }
  }
  return undefined
}

export const isLimited = (limits: ResourceLimits): boolean =>
  resources.some((resource) => limits[resource] !== undefined)

interface Admission {
  /** The new value of the record; undefined if nothing changes. */
  readonly used: UsageByVm | undefined
  /** Why VMs were not admitted, by uid. */
  readonly refused: ReadonlyMap<string, Excess>
}

/** Admits VMs in order, each if it fits with those before it. Updates the amounts of VMs that are admitted already. */
export function admit(
  { limits, used }: Quota,
  wanted: readonly (readonly [uid: string, amounts: Amounts])[],
): Admission {
  const added: Record<string, UsageByVm[string]> = {}
  const refused = new Map<string, Excess>()
  let total = totalOf(used)
  for (const [uid, amounts] of wanted) {
    const before = used[uid]
    const others = before ? without(total, before) : total
    const excess = firstExcess(limits, others, amounts)
    if (excess) {
      refused.set(uid, excess)
      continue
    }
    total = plus(others, amounts)
    if (before?.join() !== taken(amounts).join()) added[uid] = taken(amounts)
  }
  return { used: Object.keys(added).length > 0 ? { ...used, ...added } : undefined, refused }
}

export const without = (sum: Totals, [cpu, memoryMiB, macos]: UsageByVm[string]): Totals => ({
  vms: sum.vms - 1,
  cpu: sum.cpu - cpu,
  memoryMiB: sum.memoryMiB - memoryMiB,
  macos: sum.macos - macos,
})

/**
 * The least that a VM takes before a node is chosen. Automatic memory and seats of unknown guests depend on the node.
 */
export const leastAmounts = ({ cpu, memoryMiB, os }: Pick<Demand, 'cpu' | 'memoryMiB' | 'os'>): Amounts => ({
  cpu,
  memoryMiB,
  macos: os === 'macos' ? 1 : 0,
})

interface Words {
  /** The name of the setting. */
  readonly field: string
  amount(value: number): string
  /** As in "3 of 4 VMs". */
  readonly noun: string
}
const words: Readonly<Record<Resource, Words>> = {
  vms: { field: 'vms', amount: String, noun: 'VMs' },
  cpu: { field: 'cpu', amount: String, noun: 'cores' },
  memoryMiB: { field: 'memory', amount: memorySize, noun: 'memory' },
  macos: { field: 'macos', amount: String, noun: 'macOS seats' },
}
export const resources = Object.keys(words) as Resource[]

export function excessText(namespace: string, { resource, limit, used, requested }: Excess): string {
  const { amount, noun } = words[resource]
  const requestedText = resource === 'vms' || resource === 'macos' ? '' : `; ${amount(requested)} requested`
  return `Quota of ${namespace} reached: ${amount(used)} of ${amount(limit)} ${noun} in use${requestedText}`
}

/** Limits below the current use, by field. */
export const tooLow = (limits: ResourceLimits, used: Totals): { readonly field: string; readonly message: string }[] =>
  resources.flatMap((resource) => {
    const limit = limits[resource]
    const { field, amount, noun } = words[resource]
    if (limit === undefined || used[resource] <= limit) return []
    return [
      { field, message: `${field} is below use: ${amount(used[resource])} ${noun} in use, limit ${amount(limit)}` },
    ]
  })
