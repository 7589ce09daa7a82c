// The records, clock and log that every controller works with, and the loop that runs it.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { Collections } from '../store/records/collections.ts'

export interface Controller {
  readonly collections: Collections
  readonly clock: Clock
  readonly log: Log
}

/** Knows which agents are connected. A node whose agent is not connected gets no VMs. */
export interface Presence {
  isOpen(node: string): boolean
  /** Calls `listener` when the agent of a node connects or disconnects; without a name if it may be of any node. */
  subscribe(listener: (node?: string) => void): () => void
}

interface ControllerOptions {
  readonly everyMs: number
  /** Waits before the first run. */
  readonly isFirstLater?: boolean
  readonly run: (signal: AbortSignal) => Promise<void>
  /** Subscribes to changes that nudge the controller. Returns functions that unsubscribe, called before it stops. */
  readonly follow?: (loop: Loop) => readonly (() => void)[]
}

/** Runs a controller when it is nudged, and every `everyMs`. A failed run is logged and repeated. */
export function startController(
  { log }: Pick<Controller, 'log'>,
  name: string,
  { follow, ...options }: ControllerOptions,
): Loop {
  const failed = (error: unknown): void => log.error(`${name} failed and will run again`, {}, error)
  const loop = startLoop({ ...options, failed })
  const unsubscribes = follow?.(loop) ?? []
  return {
    nudge: loop.nudge,
    stop: async () => {
      for (const unsubscribe of unsubscribes) unsubscribe()
      await loop.stop()
    },
  }
}
