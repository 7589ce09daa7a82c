// The dominant share of each owner: the largest fraction of any resource of the namespace, divided by the owner's
// weight. The owner with the lowest share goes first.
import { mayBeMacos } from '../placement.ts'
import { type Amounts, nothing, plus, type Totals } from './quota.ts'

interface CountedNode {
  readonly name: string
  readonly namespace: string
  readonly report?:
    | { readonly cpu: number; readonly memoryMiB: number; readonly maxMacosVms?: number | undefined }
    | undefined
}

interface CountedVm {
  readonly owner: string
  readonly os?: string | undefined
  readonly shape: { readonly cpu: number }
  readonly place?: { readonly node: string; readonly memoryMiB: number } | undefined
}

/** What a VM takes on a node. An unknown guest takes a macOS seat where those are limited. */
export const amountsOn = (
  node: { readonly maxMacosVms?: number | undefined } | undefined,
  { cpu, memoryMiB, os }: { readonly cpu: number; readonly memoryMiB: number; readonly os?: string | undefined },
): Amounts => ({
  cpu,
  memoryMiB,
  macos: os === 'macos' || (node?.maxMacosVms !== undefined && mayBeMacos(os)) ? 1 : 0,
})

/** What a placed VM takes; undefined for a waiting one. */
export const amountsOf = (
  { os, shape: { cpu }, place }: CountedVm,
  nodeOf: (name: string) => CountedNode | undefined,
): Amounts | undefined => place && amountsOn(nodeOf(place.node)?.report, { cpu, memoryMiB: place.memoryMiB, os })

export function capacityIn(namespace: string, nodes: Iterable<CountedNode>): Amounts {
  let [cpu, memoryMiB, macos] = [0, 0, 0]
  for (const { namespace: own, report } of nodes) {
    if (own !== namespace || !report) continue
    cpu += report.cpu
    memoryMiB += report.memoryMiB
    macos += report.maxMacosVms ?? 0
  }
  return { cpu, memoryMiB, macos }
}

export function usageByOwner(
  vms: Iterable<CountedVm>,
  nodeOf: (name: string) => CountedNode | undefined,
): Map<string, Totals> {
  const usage = new Map<string, Totals>()
  for (const vm of vms) {
    const amounts = amountsOf(vm, nodeOf)
    if (amounts) usage.set(vm.owner, plus(usage.get(vm.owner) ?? nothing, amounts))
  }
  return usage
}

const fraction = (used: number, total: number): number => (used === 0 ? 0 : used / Math.max(total, 1))

export const shareOf = (used: Amounts, total: Amounts, weight = 1): number =>
  Math.max(
    fraction(used.cpu, total.cpu),
    fraction(used.memoryMiB, total.memoryMiB),
    // Unknown guests also take seats on Linux hosts, which have none to share.
    total.macos > 0 ? fraction(used.macos, total.macos) : 0,
  ) / weight
