// Handlers of quotas. The limits are compared with the current use in the compare-and-set that writes them.
import { ApiError, invalid, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/quotas.ts'
import { displayName } from '../../../auth/principal.ts'
import { timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import {
  isLimited,
  nothing,
  plus,
  type ResourceLimits,
  type Totals,
  taken,
  tooLow,
  totalOf,
  type UsageByVm,
} from '../../../rules/queue/quota.ts'
import { amountsOf, capacityIn, shareOf, usageByOwner } from '../../../rules/queue/shares.ts'
import { requestedMemoryMiB } from '../../../rules/sizes.ts'
import { type Collections, storedBy } from '../../../store/records/collections.ts'
import type { NodeRecord, QuotaRecord, VmRecord } from '../../../store/records/fleet-records.ts'
import { defaultRecordLimits, quotaKey, quotaOf, recordLimitsOf } from '../../../store/records/quotas.ts'
import { holdsQuota, isDeleted } from '../../../store/records/vms.ts'
import type { Stored } from '../../../store/shares.ts'
import { checkNamespace, writeInside } from '../../gate/namespace.ts'
import { wireOf } from '../../gate/record-limits.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'quotas'

interface QuotaServices {
  readonly collections: Collections
}

export function quotas(services: QuotaServices): HandlersOf<typeof api> {
  const { collections } = services
  const nodeOf = (name: string): NodeRecord | undefined => collections.nodes.get('', name)?.value
  const vmsIn = (namespace: string): readonly VmRecord[] => collections.vms.list(namespace).map(({ value }) => value)

  function quotaView(namespace: string): api.Quota {
    const quota = quotaOf(collections, namespace)?.value
    const vms = vmsIn(namespace).filter(holdsQuota)
    const usage = usageByOwner(vms, nodeOf)
    const waiting = new Map<string, number>()
    for (const vm of vms) if (!vm.place && !isDeleted(vm)) waiting.set(vm.owner, (waiting.get(vm.owner) ?? 0) + 1)
    const total = capacityIn(
      namespace,
      collections.nodes.list().map(({ value }) => value),
    )
    const weights = quota?.weights ?? {}
    const names = new Set([...usage.keys(), ...waiting.keys(), ...Object.keys(weights)])
    const owners = [...names].map((owner) => {
      const used = usage.get(owner) ?? nothing
      const weight = weights[owner] ?? 1
      const share = Number(shareOf(used, total, weight).toFixed(4))
      return { owner, weight, share, used: shownUse(used), waiting: waiting.get(owner) ?? 0 }
    })
    const all = quota && isLimited(quota.limits) ? totalOf(quota.used) : sumOf(vms, nodeOf)
    return {
      namespace,
      limits: shownLimits(quota?.limits ?? {}, recordLimitsOf(collections, namespace)),
      used: shownUse(all),
      stored: storedBy(collections, namespace).map(({ kind, records, bytes }) => ({
        kind: wireOf(kind),
        records,
        size: mebibytes(bytes),
      })),
      owners: owners.sort((a, b) => a.share - b.share || (a.owner < b.owner ? -1 : 1)),
      ...(quota && { updatedAt: quota.updatedAt, updatedBy: quota.updatedBy }),
    }
  }

  return {
    getQuota({ params: { namespace } }) {
      checkNamespace(services, namespace)
      return quotaView(namespace)
    },

    async setQuota({ params: { namespace }, body, principal, now }) {
      if (Object.keys(body).length === 0) throw nothingToSet()
      const next = (record: QuotaRecord | undefined): QuotaRecord | null => {
        const limits = limitsWith(record?.limits ?? {}, body)
        const weights = weightsWith(record?.weights ?? {}, body.weights ?? {})
        const records = recordLimitsWith(record?.records ?? {}, body)
        if (!isLimited(limits) && [weights, records].every((each) => Object.keys(each).length === 0)) return null
        // With the first limit, VMs that already have a node start to count.
        const used = isLimited(limits) ? { ...takenBy(vmsIn(namespace), nodeOf), ...record?.used } : {}
        const problems = tooLow(limits, totalOf(used))
        if (problems.length > 0) throw belowUse(namespace, problems)
        return { limits, weights, records, used, updatedAt: timestamp(now), updatedBy: displayName(principal) }
      }
      await writeInside(services, namespace, (space) =>
        collections.quotas.change(quotaKey(collections, namespace), next, [space]),
      )
      return quotaView(namespace)
    },
  }
}

type NodeOf = (name: string) => NodeRecord | undefined

const takenBy = (vms: readonly VmRecord[], nodeOf: NodeOf): UsageByVm =>
  Object.fromEntries(
    vms.filter(holdsQuota).flatMap((vm) => {
      const amounts = amountsOf(vm, nodeOf)
      return amounts ? [[vm.uid, taken(amounts)]] : []
    }),
  )

const sumOf = (vms: readonly VmRecord[], nodeOf: NodeOf): Totals =>
  vms.reduce((sum, vm) => {
    const amounts = amountsOf(vm, nodeOf)
    return amounts ? plus(sum, amounts) : sum
  }, nothing)

/** Limits that the request does not name are unchanged. A limit that is both set and removed is set. */
function limitsWith(
  limits: ResourceLimits,
  { vms, cpu, memory, macos, unlimited = [] }: api.QuotaInput,
): QuotaRecord['limits'] {
  const removed = new Set<string>(unlimited.map((name) => (name === 'memory' ? 'memoryMiB' : name)))
  const set = { vms, cpu, memoryMiB: memory === undefined ? undefined : requestedMemoryMiB(memory), macos }
  const unchanged = Object.entries(limits).filter(([name]) => !removed.has(name))
  return Object.fromEntries([...unchanged, ...Object.entries(set).filter(([, value]) => value !== undefined)])
}

/** Limits that are the default are not stored. */
function recordLimitsWith(
  before: Partial<Stored>,
  { records, recordSize }: api.QuotaInput,
): NonNullable<QuotaRecord['records']> {
  const bytes = recordSize === undefined ? undefined : Math.floor(recordSize * bytesPerMebibyte)
  const limits = { ...before, ...defined({ records, bytes }) }
  return Object.fromEntries(
    Object.entries(limits).filter(([name, limit]) => limit !== defaultRecordLimits[name as keyof Stored]),
  )
}

const weightsWith = (weights: QuotaRecord['weights'], changes: QuotaRecord['weights']): QuotaRecord['weights'] =>
  Object.fromEntries(Object.entries({ ...weights, ...changes }).filter(([, weight]) => weight !== 1))

const gib = (mebibytes: number): number => Number((mebibytes / 1_024).toFixed(2))

const bytesPerMebibyte = 1_048_576
const mebibytes = (bytes: number): number => Number((bytes / bytesPerMebibyte).toPrecision(4))

const shownUse = ({ vms, cpu, memoryMiB, macos }: Totals): api.QuotaUse => ({ vms, cpu, memory: gib(memoryMiB), macos })

const shownLimits = ({ vms, cpu, memoryMiB, macos }: ResourceLimits, { records, bytes }: Stored): api.QuotaLimits => ({
  ...defined({ vms, cpu, memory: memoryMiB === undefined ? undefined : gib(memoryMiB), macos }),
  records,
  recordSize: mebibytes(bytes),
})

const nothingToSet = (): ApiError =>
  new ApiError('BadRequest', 'Specify a limit or a weight', { kind, hint: 'For example {"vms": 20, "cpu": 80}' })

const belowUse = (
  namespace: string,
  problems: readonly { readonly field: string; readonly message: string }[],
): ApiError =>
  invalid(
    kind,
    problems.map(({ field, message }) => invalidField(field, message)),
    `Delete VMs first, or set a higher limit. Run svc3 quota show -n ${namespace} to see what is in use`,
  )
