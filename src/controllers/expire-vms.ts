// Deletes VMs whose TTL has passed or whose awaited deployment took too long, and secrets of VMs that were never
// created. A timer starts a run when the next VM is due.
import { createSlices } from '../platform/event-loop.ts'
import type { Loop } from '../platform/loop.ts'
import type { VmRecord } from '../store/records/fleet-records.ts'
import { isDeleted, lateDeployment, removeVm, ttlEnded } from '../store/records/vms.ts'
import { type Entry, ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const sweepMs = 60_000
const secretGraceMs = 10 * 60_000
/** How long after its timeout a deployment is ended here. Its handler does that first, unless the server restarted. */
const awaitedGraceMs = 5_000

export function expireVms(controller: Controller): Loop {
  const { collections, clock, log } = controller
  const { vms, vmSecrets } = collections
  let timer: NodeJS.Timeout | undefined
  let timerDueMs = Number.POSITIVE_INFINITY

  const loop = startController(controller, 'expire-vms', {
    everyMs: sweepMs,
    run: async (signal) => {
      const nowMs = clock.now().getTime()
      const yieldToOthers = createSlices()
      for (const entry of vms.each()) {
        const due = dueOf(entry.value)
        if (due && due.atMs <= nowMs) await end(entry, due.why)
        else if (due) wakeAt(due.atMs)
        await yieldToOthers()
        if (signal.aborted) return
      }
      for (const entry of vmSecrets.each()) {
        await yieldToOthers()
        const { value } = entry
        const isOld = nowMs - Date.parse(value.createdAt) > secretGraceMs
        if (isOld && vms.get(value.namespace, value.name)?.value.uid !== value.uid)
          await vmSecrets.delete(entry).catch(ignoreLost)
      }
    },
    follow: () => [
      vms.view.subscribe((changes) => {
        for (const change of changes) {
          const due = change.type === 'put' ? dueOf(change.entry.value) : undefined
          if (due) wakeAt(due.atMs)
        }
      }),
      () => clearTimeout(timer),
    ],
  })
  return loop

  async function end(entry: Entry<VmRecord>, why: string): Promise<void> {
    log.info(why, { name: entry.value.name, namespace: entry.value.namespace })
    // The VM may have been extended or started in between.
    await removeVm(collections, entry, why, (record) => (dueOf(record)?.atMs ?? Infinity) <= clock.now().getTime())
  }

  function wakeAt(atMs: number): void {
    if (atMs >= timerDueMs) return
    clearTimeout(timer)
    timerDueMs = atMs
    const delayMs = Math.min(Math.max(0, atMs - clock.now().getTime()) + 50, sweepMs)
    timer = setTimeout(() => {
      timerDueMs = Number.POSITIVE_INFINITY
      loop.nudge()
    }, delayMs).unref()
  }
}

function dueOf(record: VmRecord): { atMs: number; why: string } | undefined {
  if (isDeleted(record)) return undefined
  const { expiresAt, awaitedUntil, observed } = record
  if (awaitedUntil !== undefined && !observed.hasRun)
    return { atMs: Date.parse(awaitedUntil) + awaitedGraceMs, why: lateDeployment }
  return expiresAt === undefined ? undefined : { atMs: Date.parse(expiresAt), why: ttlEnded }
}
