// Which VMs of the table are shown: search words and filters, all of which have to hold. Pure.
import type { Vm } from '../../../src/api/vms/vms.ts'

export interface VmFilter {
  readonly search: string
  readonly node: string
  readonly owner: string
  /** `key=value` */
  readonly label: string
  readonly state: string
}

export const noFilter: VmFilter = { search: '', node: '', owner: '', label: '', state: '' }

export const labelsOf = (vm: Vm): string[] => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`)

const textOf = (vm: Vm): string =>
  [vm.name, vm.namespace, vm.image, vm.node ?? '', vm.owner, vm.powerState, ...labelsOf(vm)].join(' ').toLowerCase()

export function filterVms(vms: readonly Vm[], filter: VmFilter): readonly Vm[] {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean)
  const { node, owner, label, state } = filter
  if (words.length === 0 && !node && !owner && !label && !state) return vms
  return vms.filter((vm) => {
    if (node && vm.node !== node) return false
    if (owner && vm.owner !== owner) return false
    if (state && vm.powerState !== state) return false
    if (label && !labelsOf(vm).includes(label)) return false
    const text = words.length === 0 ? '' : textOf(vm)
    return words.every((word) => text.includes(word))
  })
}

/** What the filters offer: values that occur, in order. */
export const valuesOf = (vms: readonly Vm[], of: (vm: Vm) => string | readonly string[] | undefined): string[] =>
  [...new Set(vms.flatMap((vm) => of(vm) ?? []))].sort()

/** The address keeps the filters, so that a link shows the same. */
export function filterFromQuery(query: string): VmFilter {
  const params = new URLSearchParams(query)
  const keys = Object.keys(noFilter) as (keyof VmFilter)[]
  return Object.fromEntries(keys.map((key) => [key, params.get(key) ?? ''])) as unknown as VmFilter
}

export function queryFromFilter(filter: VmFilter): string {
  const given = Object.entries(filter).filter(([, value]) => value !== '')
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}
