// One answer of the service that is no list and cannot be watched: asked for when somebody looks at it, again every few seconds
// where that is wanted, and kept for a while after the last one has gone. Knows nothing of React.
import { createListeners } from './listeners.ts'

export interface Answer<T> {
  readonly data: T | undefined
  /** The last attempt failed; what is shown may be old. */
  readonly error: unknown
  /** There is neither. */
  readonly isPending: boolean
}

const freshMs = 5_000

export class PolledAnswer<T> {
  #now: Answer<T> = { data: undefined, error: undefined, isPending: true }
  #askedAtMs = Number.NEGATIVE_INFINITY
  #asking: AbortController | undefined
  readonly #listeners = createListeners()
  readonly #ask: (signal: AbortSignal) => Promise<T>
  readonly #onError: (error: unknown) => void

  constructor(ask: (signal: AbortSignal) => Promise<T>, onError: (error: unknown) => void) {
    this.#ask = ask
    this.#onError = onError
  }

  now = (): Answer<T> => this.#now

  get isUsed(): boolean {
    return this.#listeners.count() > 0
  }

  subscribe(listener: () => void): () => void {
    const leave = this.#listeners.subscribe(listener)
    return () => {
      leave()
      if (!this.isUsed) this.#stop()
    }
  }

  /** Asks, unless that is under way or was done a moment ago. */
  refresh(nowMs: number): void {
    if (this.#asking || nowMs - this.#askedAtMs < freshMs) return
    void this.again(nowMs)
  }

  async again(nowMs: number): Promise<void> {
    this.#stop()
    const mine = new AbortController()
    this.#asking = mine
    this.#askedAtMs = nowMs
    try {
      const data = await this.#ask(mine.signal)
      if (mine.signal.aborted) return
      this.#set({ data, error: undefined, isPending: false })
    } catch (error) {
      if (mine.signal.aborted) return
      this.#onError(error)
      this.#set({ ...this.#now, error, isPending: false })
    }
    this.#asking = undefined
  }

  #set(next: Answer<T>): void {
    this.#now = next
    this.#listeners.notify()
  }

  /** An answer that nobody waits for any more is asked for again when somebody does. */
  #stop(): void {
    if (!this.#asking) return
    this.#asking.abort()
    this.#asking = undefined
    this.#askedAtMs = Number.NEGATIVE_INFINITY
  }
}
