// What VMs have used, by day, namespace and owner. A VM counts from its placement to its end. Its end is written to a record before
// its own record is deleted, and a controller adds it to its days. An interruption at any point loses nothing and counts nothing
// twice.
import { randomUUID } from 'node:crypto'
import type { Collection } from '../collection.ts'
import type { VmRecord } from './fleet-records.ts'

/** The part of a VM's life that counts as use. */
export interface VmSpan {
  readonly namespace: string
  readonly owner: string
  readonly cpu: number
  readonly requestedMs: number
  /** Absent if the VM never got a node. */
  readonly placedMs?: number
  readonly endedMs: number
}

/** VMs that ended, by uid. A VM may be in two of these records and counts once. */
export interface VmEndsRecord {
  readonly spans: Readonly<Record<string, VmSpan>>
}

/** In integer ms, so that sums are exact. */
export interface UsageTotals {
  /** VMs placed on this day. */
  readonly vms: number
  readonly vmMs: number
  readonly coreMs: number
  /** Waiting time of VMs that were placed, or ended without a node, on this day. */
  readonly queueMs: number
}

/** The use of a namespace on one day. */
export interface UsageRecord {
  readonly day: string
  readonly namespace: string
  readonly owners: Readonly<Record<string, UsageTotals>>
  /** When VMs were added, by uid, for as long as their end may be added again. */
  readonly counted: Readonly<Record<string, number>>
}

export const noUsage: UsageTotals = { vms: 0, vmMs: 0, coreMs: 0, queueMs: 0 }

export const sumOf = (a: UsageTotals, b: UsageTotals): UsageTotals => ({
  vms: a.vms + b.vms,
  vmMs: a.vmMs + b.vmMs,
  coreMs: a.coreMs + b.coreMs,
  queueMs: a.queueMs + b.queueMs,
})

const dayMs = 86_400_000
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** What a VM adds to each day, in UTC. */
export function usageByDay({ cpu, requestedMs, placedMs, endedMs }: VmSpan): ReadonlyMap<string, UsageTotals> {
  const days = new Map<string, UsageTotals>()
  const add = (ms: number, more: Partial<UsageTotals>): void =>
    void days.set(dayOf(ms), sumOf(days.get(dayOf(ms)) ?? noUsage, { ...noUsage, ...more }))
  const servedMs = placedMs ?? endedMs
  add(servedMs, { vms: placedMs === undefined ? 0 : 1, queueMs: Math.max(0, servedMs - requestedMs) })
  if (placedMs === undefined) return days
  for (let fromMs = placedMs; fromMs < endedMs; ) {
    const untilMs = Math.min(endedMs, (Math.floor(fromMs / dayMs) + 1) * dayMs)
    add(fromMs, { vmMs: untilMs - fromMs, coreMs: (untilMs - fromMs) * cpu })
    fromMs = untilMs
  }
  return days
}

/** Old records without times count from their creation. */
export function spanOf({ namespace, owner, shape, place, times, createdAt }: VmRecord, nowMs: number): VmSpan {
  const requestedMs = times?.requestedMs ?? Date.parse(createdAt)
  const placedMs = times ? times.placedMs : place && requestedMs
  return {
    namespace,
    owner,
    cpu: shape.cpu,
    requestedMs,
    ...(placedMs !== undefined && { placedMs }),
    endedMs: Math.max(nowMs, placedMs ?? requestedMs),
  }
}

/** Must be written before the record of the VM is deleted. */
export async function recordEnd(vmEnds: Collection<VmEndsRecord>, record: VmRecord, nowMs: number): Promise<void> {
  await vmEnds.create('', randomUUID(), { spans: { [record.uid]: spanOf(record, nowMs) } })
}

export const usageName = (day: string, namespace: string): string => `${day}/${namespace}`

/** Adds ended VMs to a day, except those that it has already. */
export function withEnded(
  before: UsageRecord | undefined,
  about: Pick<UsageRecord, 'day' | 'namespace'>,
  ended: ReadonlyMap<string, VmSpan>,
  nowMs: number,
  isForgotten: (uid: string, addedMs: number) => boolean,
): UsageRecord {
  const owners = { ...before?.owners }
  const kept = Object.entries(before?.counted ?? {}).filter(([uid, addedMs]) => !isForgotten(uid, addedMs))
  const counted: Record<string, number> = Object.fromEntries(kept)
  for (const [uid, span] of ended) {
    if (before && Object.hasOwn(before.counted, uid)) continue
    const share = usageByDay(span).get(about.day)
    if (!share) continue
    owners[span.owner] = sumOf(owners[span.owner] ?? noUsage, share)
    counted[uid] = nowMs
  }
  return { ...about, owners, counted }
}
