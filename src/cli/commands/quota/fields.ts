// How a quota is shown: each resource with its limit, then the owners by share.
import type { Quota, QuotaOwner } from '../../../api/vms/quotas.ts'
import { memorySize } from '../../../rules/sizes.ts'
import type { Field } from '../../output/record.ts'

type Name = keyof Quota['used']
const amountOf = (name: Name, value: number): string => (name === 'memory' ? memorySize(value * 1_024) : String(value))

const line = (name: Name, { used, limits }: Quota): string => {
  const limit = limits[name]
  return `${amountOf(name, used[name])} in use, ${limit === undefined ? 'no limit' : `limit ${amountOf(name, limit)}`}`
}

const ownerText = ({ owner, weight, share, used, waiting }: QuotaOwner): string =>
  [
    `${owner}: ${(share * 100).toFixed(1)} %`,
    ...(weight === 1 ? [] : [`weight ${weight}`]),
    `${used.vms} ${used.vms === 1 ? 'VM' : 'VMs'}`,
    `${used.cpu} ${used.cpu === 1 ? 'core' : 'cores'}`,
    memorySize(used.memory * 1_024),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
  ].join(', ')

export const fields: readonly Field<Quota>[] = [
  { label: 'Namespace', value: ({ namespace }) => namespace },
  { label: 'VMs', value: (quota) => line('vms', quota) },
  { label: 'CPU', value: (quota) => line('cpu', quota) },
  { label: 'Memory', value: (quota) => line('memory', quota) },
  { label: 'macOS seats', value: (quota) => line('macos', quota) },
  { label: 'Shares', value: ({ owners }) => owners.map(ownerText) },
  { label: 'Set', value: ({ updatedAt }) => (updatedAt === undefined ? undefined : { time: updatedAt }) },
  { label: 'Set by', value: ({ updatedBy }) => updatedBy },
]
