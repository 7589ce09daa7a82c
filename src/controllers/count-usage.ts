// Adds VMs that have ended to the usage of their days, and drops days that are over a year old. Each step may be repeated: a
// day remembers whom it has until the record of that end is long gone.
import type { Loop } from '../platform/loop.ts'
import { dayOf, usageByDay, usageName, type VmEndsRecord, type VmSpan, withEnded } from '../store/records/usage.ts'
import { type Entry, ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 60_000
const keptMs = 400 * 86_400_000
/** A server that led before, and is behind, may try to add it once more. Not for longer: a busy day would outgrow its record. */
const rememberedMs = 120_000
/** In a run: what a day remembers is 50 bytes each, and a record may have a million. The others count already, and wait. */
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
      /** Their ends may be added again: the record of one is there, or the VM's own. */
      const mayReturn = new Set(all.flatMap(({ value }) => Object.keys(value.spans)))
      if (byDay.size > 0) for (const { value } of vms.list()) mayReturn.add(value.uid)
      const isForgotten = (uid: string, addedMs: number): boolean =>
        nowMs - addedMs > rememberedMs && !mayReturn.has(uid)
      for (const [name, { day, namespace, spans }] of byDay)
        await usage.change(usage.key('', name), (before) =>
          withEnded(before, { day, namespace }, spans, nowMs, isForgotten),
        )
      // Only now: all of its days have it.
      for (const entry of added) await vmEnds.delete(entry).catch(ignoreLost)
      const oldest = dayOf(nowMs - keptMs)
      for (const entry of usage.list()) if (entry.value.day < oldest) await usage.delete(entry).catch(ignoreLost)
    },
  })
}
