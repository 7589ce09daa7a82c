// Adds VMs that have ended to the usage of their days, and deletes days that are over a year old. Each step may be
// repeated, because a day remembers the VMs that it has counted until long after the records of their ends are deleted.
import type { Loop } from '../platform/loop.ts'
import { dayOf, usageByDay, usageName, type VmEndsRecord, type VmSpan, withEnded } from '../store/records/usage.ts'
import { type Entry, ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 60_000
const keptMs = 400 * 86_400_000
/**
 * How long a day remembers a VM, because a former leader that lags behind may add it again. A longer time would make
 * the record of a busy day too large.
 */
const rememberedMs = 120_000
/** A run adds no more VMs after this number. A day remembers 50 bytes per VM, and a record may have a million bytes. */
const maxAtOnce = 5_000

export function countUsage(controller: Controller): Loop {
  const { collections, clock } = controller
  const { vmEnds, vms, usage } = collections
  return startController(controller, 'count-usage', {
    everyMs,
    run: async () => {
      const nowMs = clock.now().getTime()
      const all = vmEnds.list()
      const added: Entry<VmEndsRecord>[] = []
      const ended = new Map<string, VmSpan>()
      for (const entry of all) {
        if (ended.size >= maxAtOnce) break
        added.push(entry)
        for (const [uid, span] of Object.entries(entry.value.spans)) ended.set(uid, span)
      }
      const byDay = new Map<string, { day: string; namespace: string; spans: Map<string, VmSpan> }>()
      for (const [uid, span] of ended)
        for (const day of usageByDay(span).keys()) {
          const name = usageName(day, span.namespace)
          const found = byDay.get(name) ?? { day, namespace: span.namespace, spans: new Map() }
          found.spans.set(uid, span)
          byDay.set(name, found)
        }
      /** VMs whose end may be added again, because the record of the end or of the VM exists. */
      const mayReturn = new Set(all.flatMap(({ value }) => Object.keys(value.spans)))
      if (byDay.size > 0) for (const { value } of vms.list()) mayReturn.add(value.uid)
      const isForgotten = (uid: string, addedMs: number): boolean =>
        nowMs - addedMs > rememberedMs && !mayReturn.has(uid)
      for (const [name, { day, namespace, spans }] of byDay)
        await usage.change(usage.key('', name), (before) =>
          withEnded(before, { day, namespace }, spans, nowMs, isForgotten),
        )
      // An end is deleted only after all of its days have counted it.
      for (const entry of added) await vmEnds.delete(entry).catch(ignoreLost)
      const oldest = dayOf(nowMs - keptMs)
      for (const entry of usage.list()) if (entry.value.day < oldest) await usage.delete(entry).catch(ignoreLost)
    },
  })
}
