// A loop that works when it is woken. Wake-ups that come during a turn lead to one more turn.
import { retryDelay, retryPolicies, wait } from '../../platform/retry.ts'

interface WakeLoopOptions {
  turn(): Promise<void>
  /** Called when a turn threw. It is repeated after a delay that the next wake-up cuts short. */
  failed(error: unknown, attempt: number): void
  /** Called when no wake-up is left. */
  rested(): void
}

export class WakeLoop {
  readonly #options: WakeLoopOptions
  readonly #stopping = new AbortController()
  #isDue = false
  #failures = 0
  #running: Promise<void> | undefined
  #pause = new AbortController()

  constructor(options: WakeLoopOptions) {
    this.#options = options
  }

  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  wake(): void {
    this.#isDue = true
    this.#pause.abort()
    if (!this.signal.aborted) this.#running ??= this.#run()
  }

  /** Begins no further turn. The promise resolves when the last one has ended. */
  stop(): Promise<void> {
    this.#stopping.abort()
    return this.#running ?? Promise.resolve()
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.signal.aborted) {
      this.#isDue = false
      try {
        await this.#options.turn()
        this.#failures = 0
      } catch (error) {
        this.#options.failed(error, ++this.#failures)
        this.#pause = new AbortController()
        const signal = AbortSignal.any([this.signal, this.#pause.signal])
        await wait(retryDelay(error, this.#failures, retryPolicies.background), signal).catch(() => undefined)
        this.#isDue = true
      }
    }
    this.#running = undefined
    if (!this.signal.aborted) this.#options.rested()
  }
}
