// One list as it is now, kept by the API's watch: filled once, then changed as changes come. Knows nothing of React.
import type { WatchEvent } from '../../src/client/watch.ts'
import { createListeners } from './listeners.ts'

export interface Snapshot<T> {
  readonly items: readonly T[]
  /** All that there was at the beginning has come. */
  readonly isLoaded: boolean
  /** The last attempt failed; what is shown may be old. */
  readonly error: unknown
}

/** Begins a watch from what is there. Ends when the signal aborts, throws when the watch fails. */
type Follow<T> = (signal: AbortSignal) => AsyncIterable<WatchEvent<T>>

interface Schedule {
  /** Called once for many changes. */
  readonly soon: (work: () => void) => void
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const retryMs = 3_000

export class LiveList<T> {
  #items = new Map<string, T>()
  /** While it is filled again: what has come so far. What was shown stays until all of it has. */
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
    // The state is kept at once, the items are copied soon: once for a thousand changes.
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
