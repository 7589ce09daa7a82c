// Sets the readiness of nodes: READY once a stream is open, NOT READY after 40 s without one, and later while nodes come back
// after a start. (A stream that looks open but is silent for that long is reported by the server that holds it.)
import { timestamp } from '../platform/clock.ts'
import { createSlices } from '../platform/event-loop.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { NodeRecord } from '../store/records/fleet-records.ts'
import { markNode } from '../store/records/node-states.ts'
import type { Controller, Presence } from './controller.ts'

const everyMs = 5_000
const patienceMs = 40_000
/** After a start nodes are let in one after the other: the last one waits for no more than this for each that there is. */
const mostArrivalMs = 20

export function markNodes(controller: Controller, presence: Presence, patience = patienceMs): Loop {
  const { collections, clock, log } = controller
  const seen = new SeenNodes(performance.now(), patience)

  return startLoop({
    everyMs: Math.min(everyMs, patience),
    failed: (error) => log.error('mark-nodes failed and will run again', {}, error),
    run: async (signal) => {
      const nowMs = performance.now()
      const count = collections.nodes.view.size
      const others = createSlices()
      for (const { value } of collections.nodes.each()) {
        await others()
        if (signal.aborted) return
        const { name, isReady } = value
        const isOpen = presence.isOpen(name)
        if (isOpen) seen.note(name, nowMs)
        if (isOpen && !isReady) await mark(value, true)
        else if (isReady && seen.isLost(name, nowMs, count)) await mark(value, false)
      }
    },
  })

  async function mark(node: NodeRecord, isReady: boolean): Promise<void> {
    log.info(isReady ? 'node is ready' : 'node is not responding', { node: node.name })
    const at = timestamp(clock.now())
    await markNode(collections, node, { isReady, at, isOpen: (name) => presence.isOpen(name) })
  }
}

/** When nodes were last seen with an open stream. While nodes come back after a start, those that have not yet are not lost. */
export class SeenNodes {
  readonly #seenMs = new Map<string, number>()
  readonly #startedMs: number
  readonly #patienceMs: number
  /** When the last one came that had not been seen before. */
  #cameMs: number

  constructor(startedMs: number, patienceMs: number) {
    this.#startedMs = startedMs
    this.#patienceMs = patienceMs
    this.#cameMs = startedMs
  }

  note(node: string, nowMs: number): void {
    if (!this.#seenMs.has(node)) this.#cameMs = nowMs
    this.#seenMs.set(node, nowMs)
  }

  /** `count`: of all nodes. */
  isLost(node: string, nowMs: number, count: number): boolean {
    const waitsSinceMs = Math.min(this.#cameMs, this.#startedMs + count * mostArrivalMs)
    return nowMs - (this.#seenMs.get(node) ?? waitsSinceMs) > this.#patienceMs
  }
}
