// Handler of usage: the sum of stored days, of VMs that ended since these were written, and of VMs that still exist.
import { badRequest, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/service/usage.ts'
import type { Usage } from '../../../api/service/usage.ts'
import { usageCsv } from '../../../api/service/usage-csv.ts'
import type { Principal } from '../../../auth/principal.ts'
import type { Roles } from '../../../auth/roles.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { dayOf, noUsage, spanOf, sumOf, type UsageTotals, usageByDay } from '../../../store/records/usage.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface UsageServices {
  readonly collections: Pick<Collections, 'namespaces' | 'vms' | 'vmEnds' | 'usage'>
  readonly roles: Roles
  readonly clock: Clock
}

interface UsageCall {
  readonly params: { readonly namespace: string }
  readonly query: Days | undefined
  readonly principal: Principal
}

interface Days {
  readonly from?: string
  readonly to?: string
}

const defaultDays = 30
const dayMs = 86_400_000

export function usage({ collections, roles, clock }: UsageServices): HandlersOf<typeof api> {
  const { vms, vmEnds } = collections

  /** Usage outlives its namespace. That of an earlier namespace of the same name is shown only to administrators. */
  function firstDay(principal: Principal, namespace: string): string {
    const createdAt = collections.namespaces.get('', namespace)?.value.createdAt
    const isAdmin = roles.roleOf(principal, namespace) === 'admin'
    return isAdmin || createdAt === undefined ? '' : dayOf(Date.parse(createdAt))
  }

  /** The latest day first. */
  function usageFor({ params: { namespace }, query = {}, principal }: UsageCall): readonly Usage[] {
    const first = firstDay(principal, namespace)
    const nowMs = clock.now().getTime()
    const to = dayIn('to', query.to) ?? dayOf(nowMs)
    const from = dayIn('from', query.from) ?? dayOf(Date.parse(to) - (defaultDays - 1) * dayMs)
    const totals = new Map<string, Usage & { sum: UsageTotals }>()
    const add = (day: string, owner: string, more: UsageTotals): void => {
      if (day < from || day < first || day > to) return
      const key = `${day} ${owner}`
      const sum = sumOf(totals.get(key)?.sum ?? noUsage, more)
      totals.set(key, { ...totalsView(sum), day, namespace, owner, sum })
    }
    const stored = new Map(
      collections.usage.list().flatMap(({ value }) => (value.namespace === namespace ? [[value.day, value]] : [])),
    )
    for (const { day, owners } of stored.values())
      for (const [owner, more] of Object.entries(owners)) add(day, owner, more)
    /** VMs whose end is recorded or counted, even if their records still exist. */
    const ended = new Set([...stored.values()].flatMap(({ counted }) => Object.keys(counted)))
    const uncounted = new Map(vmEnds.list().flatMap(({ value }) => Object.entries(value.spans)))
    for (const [uid, span] of uncounted) {
      ended.add(uid)
      if (span.namespace !== namespace) continue
      for (const [day, more] of usageByDay(span))
        if (!Object.hasOwn(stored.get(day)?.counted ?? {}, uid)) add(day, span.owner, more)
    }
    for (const { value } of vms.list(namespace)) {
      if (ended.has(value.uid)) continue
      for (const [day, more] of usageByDay(spanOf(value, nowMs))) add(day, value.owner, more)
    }
    const order = (a: Usage, b: Usage): number => compare(b.day, a.day) || compare(a.owner, b.owner)
    return [...totals.values()].toSorted(order).map(({ sum: _, ...item }) => item)
  }

  return {
    listUsage: (call) => ({ items: [...usageFor(call)] }),

    getUsageCsv: (call) => usageCsv(usageFor(call)),
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
const rounded = (value: number): number => Number(value.toFixed(3))

const totalsView = ({ vms, vmMs, coreMs, queueMs }: UsageTotals) => ({
  vms,
  vmHours: rounded(vmMs / 3_600_000),
  coreHours: rounded(coreMs / 3_600_000),
  queueSeconds: rounded(queueMs / 1_000),
})

function dayIn(field: 'from' | 'to', text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(ms) && dayOf(ms) === text) return text
  throw badRequest([invalidField(field, `${field}: "${text}" is not a day`)], 'Use a day such as 2026-11-17')
}
