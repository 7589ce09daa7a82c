// svc3 quota

import { getQuota, type Quota, type QuotaInput, type QuotaOwner, quotaLimits, setQuota } from '../../api/vms/quotas.ts'
import { defined } from '../../platform/defined.ts'
import { memorySize } from '../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import type { Field } from '../output/record.ts'
import { printRecord } from '../record-commands.ts'
import { pairsOf } from './vm/parts/pairs.ts'

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

const recordLines = ({ limits, stored }: Quota): string[] => [
  `limit ${limits.records} and ${memorySize(limits.recordSize)} of each kind`,
  ...stored.map(({ kind, records, size }) => `${kind}: ${records}, ${memorySize(size)}`),
]

const fields: readonly Field<Quota>[] = [
  { label: 'Namespace', value: ({ namespace }) => namespace },
  { label: 'VMs', value: (quota) => line('vms', quota) },
  { label: 'CPU', value: (quota) => line('cpu', quota) },
  { label: 'Memory', value: (quota) => line('memory', quota) },
  { label: 'macOS seats', value: (quota) => line('macos', quota) },
  { label: 'Records', value: recordLines },
  { label: 'Shares', value: ({ owners }) => owners.map(ownerText) },
  { label: 'Set', value: ({ updatedAt }) => (updatedAt === undefined ? undefined : { time: updatedAt }) },
  { label: 'Set by', value: ({ updatedBy }) => updatedBy },
]

const show = defineCommand({
  arguments: {},
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 quota show -n svc-ios', does: 'Show the limits of a namespace, and who uses how much' }],
  async run(context) {
    const { client, namespace } = await context.connect()
    return printRecord(context, await client.call(getQuota, { params: { namespace }, signal: context.signal }), fields)
  },
})

type Limit = (typeof quotaLimits)[number]
const whole = { type: 'integer', value: 'N', min: 0, max: 1_000_000 } as const

const set = defineCommand({
  description:
    'Changes only the limits that are named. A VM over the quota waits; running VMs are never stopped. For administrators.',
  arguments: {},
  options: {
    vms: { ...whole, description: 'Maximum number of VMs' },
    cpu: { ...whole, description: 'Maximum number of cores' },
    memory: {
      type: 'gibibytes',
      value: 'GIB',
      max: 1_000_000,
      description: 'Maximum memory in GiB, such as 64 or 64G',
    },
    macos: { ...whole, description: 'Maximum number of macOS VMs' },
    records: { ...whole, description: 'Maximum number of records of each kind (default 20000)' },
    'record-size': {
      type: 'integer',
      value: 'MIB',
      min: 0,
      max: 1_024,
      description: 'Maximum size of all records of a kind together, in MiB (default 32)',
    },
    unlimited: {
      type: 'string',
      value: 'LIMIT[,…]',
      repeatable: true,
      description: 'Remove limits: vms, cpu, memory, macos or all',
    },
    weight: {
      type: 'string',
      value: 'OWNER=N[,…]',
      repeatable: true,
      description: 'Weight of a user or service account in the queue (default 1)',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 quota set -n svc-ios --vms 20 --cpu 80 --memory 256', does: 'Limit VMs, cores and memory' },
    { line: 'svc3 quota set --weight serviceaccount:svc-default:release=3', does: 'Give an owner three shares' },
    { line: 'svc3 quota set --unlimited all', does: 'Remove all limits' },
  ],
  async run(context, { options }) {
    const { vms, cpu, memory, macos, records, 'record-size': recordSize } = options
    const unlimited = unlimitedIn(options.unlimited)
    const weights = weightsIn(options.weight)
    const body: QuotaInput = defined({ vms, cpu, memory, macos, records, recordSize, unlimited, weights })
    if (Object.keys(body).length === 0)
      throw new UsageError('Specify a limit or a weight', 'For example: svc3 quota set --vms 20 --cpu 80')
    const { client, namespace } = await context.connect()
    return printRecord(
      context,
      await client.call(setQuota, { params: { namespace }, body, signal: context.signal }),
      fields,
    )
  },
})

function unlimitedIn(texts: readonly string[]): Limit[] | undefined {
  const names = texts.flatMap((text) => text.split(',')).map((name) => name.trim())
  if (names.length === 0) return undefined
  return names.flatMap((name) => {
    if (name === 'all') return [...quotaLimits]
    const known = quotaLimits.find((limit) => limit === name)
    if (known) return [known]
    throw new UsageError(`Invalid --unlimited "${name}"`, `Specify ${quotaLimits.join(', ')} or all`)
  })
}

function weightsIn(texts: readonly string[]): Record<string, number> | undefined {
  const pairs = pairsOf(texts, { option: '--weight' })
  if (!pairs) return undefined
  return Object.fromEntries(
    Object.entries(pairs).map(([owner, text]) => {
      const weight = Number(text)
      if (text.trim() !== '' && weight >= 0.01 && weight <= 1_000) return [owner, weight]
      throw new UsageError(
        `Invalid --weight "${owner}=${text}"`,
        'Specify a number from 0.01 to 1000; 1 is the default',
      )
    }),
  )
}

export const commands = {
  show,
  set,
}
