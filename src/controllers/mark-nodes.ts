// Marks nodes as READY once their stream is open, and as NOT READY after 40 s without one. While nodes that were lost
// together return, the remaining ones get more time. A node whose stream is open but silent for that long is marked by
// the server that holds the stream (src/server/nodes/nodes.ts).
import { timestamp } from '../platform/clock.ts'
import { createSlices } from '../platform/event-loop.ts'
import type { Loop } from '../platform/loop.ts'
import type { NodeRecord } from '../store/records/fleet-records.ts'
import { markNode } from '../store/records/node-states.ts'
import { type Controller, type Presence, startController } from './controller.ts'

const everyMs = 5_000
const timeoutMs = 40_000
/** Nodes that return together are admitted one after the other. Each is allowed this much time. */
const maxArrivalMs = 20

export function markNodes(controller: Controller, presence: Presence, lostAfterMs = timeoutMs): Loop {
  const { collections, clock, log } = controller
  const seen = new SeenNodes(performance.now(), lostAfterMs)

  return startController(controller, 'mark-nodes', {
    everyMs: Math.min(everyMs, lostAfterMs),
    run: async (signal) => {
      const nowMs = performance.now()
      const yieldToOthers = createSlices()
      const away: NodeRecord[] = []
      for (const { value } of collections.nodes.each()) {
        await yieldToOthers()
        const isOpen = presence.isOpen(value.name)
        seen.note(value.name, isOpen, nowMs)
        if (isOpen && !value.isReady) await mark(value, true, nowMs)
        else if (!isOpen && value.isReady) away.push(value)
        if (signal.aborted) return
      }
      seen.counted()
      for (const node of away) {
        if (seen.isLost(node.name, nowMs)) await mark(node, false, nowMs)
        if (signal.aborted) return
      }
    },
  })

  async function mark(node: NodeRecord, isReady: boolean, nowMs: number): Promise<void> {
    log.info(isReady ? 'node is ready' : 'node is not responding', { node: node.name })
    const now = clock.now()
    const seenAt = timestamp(new Date(now.getTime() - seen.agoMs(node.name, nowMs)))
    await markNode(collections, node, { isReady, at: timestamp(now), seenAt, isOpen: (name) => presence.isOpen(name) })
  }
}

/** Nodes that were last seen at the same time, for example before a restart or a network failure. */
interface Group {
  /** The largest number of them that were away together. */
  size: number
  /** When the last of them returned. */
  cameMs: number
}

/** Remembers when nodes were last seen with an open stream. */
export class SeenNodes {
  readonly #seenMs = new Map<string, number>()
  readonly #startedMs: number
  readonly #timeoutMs: number
  /** Groups by the time at which their nodes were last seen. */
  readonly #groups = new Map<number, Group>()
  /** How many nodes are away in this pass, by the time at which they were last seen. */
  readonly #away = new Map<number, number>()

  constructor(startedMs: number, timeoutMs: number) {
    this.#startedMs = startedMs
    this.#timeoutMs = timeoutMs
  }

  note(node: string, isOpen: boolean, nowMs: number): void {
    const lastMs = this.#lastMs(node)
    const group = this.#groups.get(lastMs)
    if (isOpen && group) group.cameMs = nowMs
    if (isOpen) this.#seenMs.set(node, nowMs)
    else this.#away.set(lastMs, (this.#away.get(lastMs) ?? 0) + 1)
  }

  /** Updates the groups. Call this after all nodes were noted. */
  counted(): void {
    for (const lastMs of this.#groups.keys()) if (!this.#away.has(lastMs)) this.#groups.delete(lastMs)
    for (const [lastMs, count] of this.#away) {
      const { size, cameMs } = this.#groups.get(lastMs) ?? { size: 0, cameMs: lastMs }
      this.#groups.set(lastMs, { size: Math.max(size, count), cameMs })
    }
    this.#away.clear()
  }

  isLost(node: string, nowMs: number): boolean {
    const lastMs = this.#lastMs(node)
    const { size, cameMs } = this.#groups.get(lastMs) ?? { size: 0, cameMs: lastMs }
    return nowMs - Math.min(cameMs, lastMs + size * maxArrivalMs) > this.#timeoutMs
  }

  /** How long ago the node was last seen; 0 if that was before the start of this process. */
  agoMs(node: string, nowMs: number): number {
    return nowMs - (this.#seenMs.get(node) ?? nowMs)
  }

  #lastMs(node: string): number {
    return this.#seenMs.get(node) ?? this.#startedMs
  }
}
