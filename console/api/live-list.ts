// One list kept current by a watch. Independent of React.
import type { WatchEvent } from '../../src/client/watch.ts'
import { createListeners } from './listeners.ts'

export interface Snapshot<T> {
  readonly items: readonly T[]
  /** Whether the initial list is complete. */
  readonly isLoaded: boolean
  /** The error of the last attempt, if it failed. The items may then be stale. */
  readonly error: unknown
}

/**
 * Starts a watch with the current items as its first events. Ends when the signal aborts, throws when the watch fails.
 */
type Follow<T> = (signal: AbortSignal) => AsyncIterable<WatchEvent<T>>

interface Schedule {
  /** Runs `work` once for a batch of changes. */
  readonly soon: (work: () => void) => void
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const retryMs = 3_000

export class LiveList<T> {
  #items = new Map<string, T>()
  /** Items of a list that is being refilled. The previous items stay visible until it is complete. */
  #next: Map<string, T> | undefined
  #snapshot: Snapshot<T> = { items: [], isLoaded: false, error: undefined }
  readonly #listeners = createListeners()
  #isDue = false
  #stop: AbortController | undefined
  readonly #keyOf: (item: T) => string
  readonly #follow: Follow<T>
  readonly #schedule: Schedule

  constructor(keyOf: (item: T) => string, follow: Follow<T>, schedule: Schedule) {
    this.#keyOf = keyOf
    this.#follow = follow
    this.#schedule = schedule
  }

  snapshot = (): Snapshot<T> => this.#snapshot

  subscribe = (listener: () => void): (() => void) => this.#listeners.subscribe(listener)

  get isUsed(): boolean {
    return this.#listeners.count() > 0
  }

  start(): void {
    if (this.#stop) return
    this.#stop = new AbortController()
    void this.#run(this.#stop.signal)
  }

  stop(): void {
    this.#stop?.abort()
    this.#stop = undefined
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#next = new Map()
      try {
        for await (const event of this.#follow(signal)) {
          if (signal.aborted) return
          this.#apply(event)
        }
      } catch (error) {
        if (signal.aborted) return
        this.#publish({ error })
      }
      await this.#schedule.wait(retryMs, signal).catch(() => undefined)
    }
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type === 'BOOKMARK') {
      if (!this.#next) return
      this.#items = this.#next
      this.#next = undefined
      this.#publish({ error: undefined, isLoaded: true })
      return
    }
    const into = this.#next ?? this.#items
    const key = this.#keyOf(event.object)
    if (event.type === 'DELETED') into.delete(key)
    else into.set(key, event.object)
    if (!this.#next) this.#publish({ error: undefined })
  }

  #publish(change: Partial<Snapshot<T>>): void {
    const state = { isLoaded: this.#snapshot.isLoaded, error: this.#snapshot.error, ...change }
    // The state changes now; the items are copied once per batch, since a batch can hold thousands of events.
    this.#snapshot = { items: this.#snapshot.items, ...state }
    if (this.#isDue) return
    this.#isDue = true
    this.#schedule.soon(() => {
      this.#isDue = false
      this.#snapshot = { ...this.#snapshot, items: [...this.#items.values()] }
      this.#listeners.notify()
    })
  }
}
