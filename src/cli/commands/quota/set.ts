// svc3 quota set
import { type QuotaInput, quotaLimits, setQuota } from '../../../api/vms/quotas.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { printRecord } from '../../print-record.ts'
import { pairsOf } from '../vm/parts/pairs.ts'
import { defined } from '../vm/parts/shape.ts'
import { fields } from './fields.ts'

type Limit = (typeof quotaLimits)[number]
const whole = { type: 'integer', value: 'N', min: 0, max: 1_000_000 } as const

export const command = defineCommand({
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
    const { vms, cpu, memory, macos } = options
    const unlimited = unlimitedIn(options.unlimited)
    const body: QuotaInput = defined({ vms, cpu, memory, macos, unlimited, weights: weightsIn(options.weight) })
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
