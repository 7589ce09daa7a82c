// What VMs have used, by day, namespace and owner. A VM counts from its placement to its end. One that ends leaves a record of
// it, written before its own goes, together with others of that moment; a controller adds that to its days. Cut off anywhere,
// nothing is lost or counted twice.
import { randomUUID } from 'node:crypto'
import type { Collection } from '../collection.ts'
import type { VmRecord } from './fleet-records.ts'

/** One VM, as far as usage goes. */
export interface VmSpan {
  readonly namespace: string
  readonly owner: string
  readonly cpu: number
  readonly requestedMs: number
  /** Absent: it never got a node. */
  readonly placedMs?: number
  readonly endedMs: number
}

/** VMs that ended in one moment, by uid. One may be in two of them: it counts once. */
export interface VmEndsRecord {
  readonly spans: Readonly<Record<string, VmSpan>>
}

/** In ms, so that sums are exact. */
export interface UsageTotals {
  /** Placed on this day. */
  readonly vms: number
  readonly vmMs: number
  readonly coreMs: number
  /** How long those waited for a node that got one, or ended without, on this day. */
  readonly queueMs: number
}

/** Of a namespace on a day. */
export interface UsageRecord {
  readonly day: string
  readonly namespace: string
  readonly owners: Readonly<Record<string, UsageTotals>>
  /** VMs whose record of the end may still be there, by uid, and when they were added. */
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

/** Those from before times were kept count from when they were made. */
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

/** A span takes some 200 bytes, a record up to a million. */
const maxTogether = 1_000

/** One write at a time; who comes meanwhile goes with the next. */
class EndWriter {
  #last: Promise<unknown> = Promise.resolve()
  #next: { readonly spans: Record<string, VmSpan>; count: number; readonly written: Promise<unknown> } | undefined

  add(vmEnds: Collection<VmEndsRecord>, uid: string, span: VmSpan): Promise<unknown> {
    if (this.#next && this.#next.count < maxTogether) {
      this.#next.spans[uid] = span
      this.#next.count += 1
      return this.#next.written
    }
    const spans = { [uid]: span }
    const written = this.#last.then(() => {
      if (this.#next?.spans === spans) this.#next = undefined
      return vmEnds.create('', randomUUID(), { spans })
    })
    this.#next = { spans, count: 1, written }
    this.#last = written.catch(() => undefined)
    return written
  }
}
const writers = new WeakMap<object, EndWriter>()

/** Before a VM's record goes. */
export async function recordEnd(vmEnds: Collection<VmEndsRecord>, record: VmRecord, nowMs: number): Promise<void> {
  const writer = writers.get(vmEnds) ?? new EndWriter()
  writers.set(vmEnds, writer)
  await writer.add(vmEnds, record.uid, spanOf(record, nowMs))
}

export const usageName = (day: string, namespace: string): string => `${day}/${namespace}`

/** A day with VMs that ended. Those that it has already are left out. */
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
