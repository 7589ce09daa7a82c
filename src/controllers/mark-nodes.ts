// Says in the records which nodes answer: READY as soon as a stream is open, NOT READY when there was none for 40 s. The
// VMs of a node that is gone are not touched; what they are is unknown until it is back.
import { timestamp } from '../platform/clock.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { NodeRecord } from '../store/fleet-records.ts'
import { changeNode, changeVm } from '../store/vms.ts'
import type { Controller } from './controller.ts'
import type { Presence } from './rooms.ts'

const everyMs = 5_000
export const patienceMs = 40_000

export function markNodes(controller: Controller, presence: Presence, patience = patienceMs): Loop {
  const { collections, clock, log } = controller
  /** When a node was last seen with an open stream; the start of this server for those that were not seen yet. */
  const openMs = new Map<string, number>()
  const startedMs = performance.now()

  return startLoop({
    everyMs: Math.min(everyMs, patience),
    failed: (error) => log.error('mark-nodes failed and will run again', {}, error),
    run: async (signal) => {
      const nowMs = performance.now()
      for (const { value } of collections.nodes.list()) {
        if (signal.aborted) return
        const { name, isReady } = value
        if (presence.isOpen(name)) openMs.set(name, nowMs)
        if (presence.isOpen(name) && !isReady) await mark(value, true)
        else if (isReady && nowMs - (openMs.get(name) ?? startedMs) > patience) await mark(value, false)
      }
    },
  })

  async function mark({ name, allocations }: NodeRecord, isReady: boolean): Promise<void> {
    log.info(isReady ? 'a node is ready' : 'a node does not answer', { node: name })
    const at = timestamp(clock.now())
    await changeNode(collections, name, (record) =>
      presence.isOpen(name) === isReady ? { ...record, isReady, lastSeenAt: at } : undefined,
    )
    if (isReady) return
    const message = `node "${name}" does not answer since ${at}`
    const condition = { type: 'NodeReady', status: 'False', reason: 'NodeLost', message, at } as const
    for (const [uid, vm] of Object.entries(allocations)) {
      const key = collections.vms.key(vm.namespace, vm.name)
      await changeVm(collections, key, uid, (record) => {
        // Back already: what it reports is the truth.
        if (presence.isOpen(name)) return undefined
        const power = record.observed.hasRun ? 'unknown' : record.observed.power
        const conditions = [...record.conditions.filter(({ type }) => type !== 'NodeReady'), condition]
        return { ...record, observed: { ...record.observed, power }, conditions }
      })
    }
  }
}
