// One response that cannot be watched. It is fetched while components use it and cached for a while after. Independent
// of React.
import { createListeners } from './listeners.ts'

export interface AnswerState<T> {
  readonly data: T | undefined
  /** The last attempt failed, so the data may be stale. */
  readonly error: unknown
  /** Neither data nor an error has arrived yet. */
  readonly isPending: boolean
}

const freshMs = 5_000

export class PolledAnswer<T> {
  #now: AnswerState<T> = { data: undefined, error: undefined, isPending: true }
  #askedAtMs = Number.NEGATIVE_INFINITY
  #asking: AbortController | undefined
  readonly #listeners = createListeners()
  readonly #ask: (signal: AbortSignal) => Promise<T>
  readonly #onError: (error: unknown) => void

  constructor(ask: (signal: AbortSignal) => Promise<T>, onError: (error: unknown) => void) {
    this.#ask = ask
    this.#onError = onError
  }

  now = (): AnswerState<T> => this.#now

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

  /** Fetches unless a request is in progress or the answer is fresh. */
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

  #set(next: AnswerState<T>): void {
    this.#now = next
    this.#listeners.notify()
  }

  /** Aborts a request whose result is no longer used; the next subscriber fetches again. */
  #stop(): void {
    if (!this.#asking) return
    this.#asking.abort()
    this.#asking = undefined
    this.#askedAtMs = Number.NEGATIVE_INFINITY
  }
}
