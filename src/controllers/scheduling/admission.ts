// Admits VMs with a chosen node to the quota of their namespace, and removes entries of VMs that do not exist. Costs
// nothing for namespaces without limits.
import type { Allocation, Candidate } from '../../rules/placement.ts'
import {
  type Amounts,
  admit,
  excessText,
  firstExcess,
  isLimited,
  plus,
  type Totals,
  taken,
  totalOf,
  without,
} from '../../rules/queue/quota.ts'
import { amountsOf, amountsOn } from '../../rules/queue/shares.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { QuotaRecord, VmRecord } from '../../store/records/fleet-records.ts'
import { quotaKey, quotaOf } from '../../store/records/quotas.ts'
import { holdsQuota } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'

type Records = Pick<Collections, 'quotas' | 'vms' | 'nodes'>

/** The quota of a namespace during one run of the scheduler. */
interface Plan {
  readonly quota: QuotaRecord
  total: Totals
  readonly wanted: Map<string, Amounts>
}

export class QuotaAdmission {
  readonly #records: Records
  readonly #plans = new Map<string, Plan | undefined>()
  readonly #written = new Map<string, Promise<ReadonlyMap<string, unknown>>>()

  constructor(records: Records) {
    this.#records = records
  }

  /** Why a VM waits for the quota, before a node is chosen. */
  refusal({ namespace, uid }: VmRecord, least: Amounts): string | undefined {
    const plan = this.#planOf(namespace)
    // A VM that an earlier run admitted takes no more than it has.
    if (!plan || plan.quota.used[uid]) return undefined
    return reasonIn(namespace, plan, least)
  }

  /** Counts a VM with a chosen node, or returns why it waits. */
  take({ namespace, uid }: VmRecord, node: Candidate, allocation: Allocation): string | undefined {
    const plan = this.#planOf(namespace)
    if (!plan) return undefined
    const amounts = amountsOn(node, allocation)
    const had = plan.quota.used[uid]
    const others = had ? without(plan.total, had) : plan.total
    const reason = reasonIn(namespace, { ...plan, total: others }, amounts)
    if (reason !== undefined) return reason
    plan.wanted.set(uid, amounts)
    plan.total = plus(others, amounts)
    return undefined
  }

  /**
   * Admits all VMs of a namespace by one compare-and-set. Returns those that did not fit, because another server may
   * have been first.
   */
  async refused(namespace: string): Promise<ReadonlyMap<string, unknown> | undefined> {
    const plan = this.#planOf(namespace)
    if (!plan) return undefined
    const written = this.#written.get(namespace) ?? this.#write(namespace, plan)
    this.#written.set(namespace, written)
    return written
  }

  async #write(namespace: string, { wanted }: Plan): Promise<ReadonlyMap<string, unknown>> {
    let refused: ReadonlyMap<string, unknown> = new Map()
    await this.#records.quotas.change(quotaKey(this.#records, namespace), (record) => {
      if (!record || !isLimited(record.limits)) return undefined
      const admission = admit(record, [...wanted])
      refused = admission.refused
      return admission.used && { ...record, used: admission.used }
    })
    return refused
  }

  #planOf(namespace: string): Plan | undefined {
    if (this.#plans.has(namespace)) return this.#plans.get(namespace)
    const quota = quotaOf(this.#records, namespace)?.value
    const plan =
      quota && isLimited(quota.limits)
        ? { quota, total: totalOf(quota.used), wanted: new Map<string, Amounts>() }
        : undefined
    this.#plans.set(namespace, plan)
    return plan
  }
}

function reasonIn(namespace: string, { quota, total }: Plan, amounts: Amounts): string | undefined {
  const excess = firstExcess(quota.limits, total, amounts)
  return excess && excessText(namespace, excess)
}

/** Whether waiting VMs may be admitted now. */
export function mayAdmitMore(before: Entry<QuotaRecord> | undefined, after: Entry<QuotaRecord> | undefined): boolean {
  if (!before || !after) return true
  const { used: had, limits: old, weights: oldWeights } = before.value
  const { used: has, limits, weights } = after.value
  const isSet = JSON.stringify([old, oldWeights]) !== JSON.stringify([limits, weights])
  return isSet || Object.keys(had).some((uid) => !has[uid])
}

/** Removes a uid if two sweeps in a row find no VM, because a request may reserve its share before it writes the VM. */
export class QuotaSweep {
  #strays = new Set<string>()

  /** Removes entries of VMs that do not exist, and adds VMs with a node that are missing after a crash. */
  async run(records: Records): Promise<void> {
    const strays = new Set<string>()
    for (const { key, value } of records.quotas.list()) {
      if (!isLimited(value.limits)) continue
      const namespace = records.quotas.scopeOf(key)
      await records.quotas.change(key, (record) => {
        const holders = new Map(holdersIn(records, namespace))
        const entries = Object.entries(record?.used ?? {})
        const gone = entries.flatMap(([uid]) => (holders.has(uid) ? [] : [uid]))
        for (const uid of gone) strays.add(uid)
        const kept = entries.filter(([uid]) => holders.has(uid) || !this.#strays.has(uid))
        const added = [...holders].flatMap(([uid, amounts]) =>
          amounts && !record?.used[uid] ? [[uid, taken(amounts)] as const] : [],
        )
        if (!record || (kept.length === entries.length && added.length === 0)) return undefined
        return { ...record, used: Object.fromEntries([...kept, ...added]) }
      })
    }
    this.#strays = strays
  }
}

/** VMs that count against the quota, and their amounts if they have a node. */
function* holdersIn({ vms, nodes }: Records, namespace: string): Iterable<[string, Amounts | undefined]> {
  for (const { value } of vms.list(namespace))
    if (holdsQuota(value)) yield [value.uid, amountsOf(value, (name) => nodes.get('', name)?.value)]
}
