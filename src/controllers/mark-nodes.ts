// Sets the readiness of nodes: READY once a stream is open, NOT READY after 40 s without one. (A stream that looks open
// but is silent for that long is reported by the server that holds it.)
import { timestamp } from '../platform/clock.ts'
import { createSlices } from '../platform/event-loop.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { NodeRecord } from '../store/records/fleet-records.ts'
import { markNode } from '../store/records/node-states.ts'
import type { Controller, Presence } from './controller.ts'

const everyMs = 5_000
const patienceMs = 40_000
/** After a start nodes are let in one after the other: each that there is may keep the last one waiting so much longer. */
const arrivalMs = 6

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
      const firstSeenMs = startedMs + collections.nodes.view.size * arrivalMs
      const others = createSlices()
      for (const { value } of collections.nodes.each()) {
        await others()
        if (signal.aborted) return
        const { name, isReady } = value
        const isOpen = presence.isOpen(name)
        if (isOpen) openMs.set(name, nowMs)
        if (isOpen && !isReady) await mark(value, true)
        else if (isReady && nowMs - (openMs.get(name) ?? firstSeenMs) > patience) await mark(value, false)
      }
    },
  })

  async function mark(node: NodeRecord, isReady: boolean): Promise<void> {
    log.info(isReady ? 'node is ready' : 'node is not responding', { node: node.name })
    const at = timestamp(clock.now())
    await markNode(collections, node, { isReady, at, isOpen: (name) => presence.isOpen(name) })
  }
}
