// Limits concurrent calls. Further calls wait here, where they have certainly done nothing, and not in etcd, where they
// could time out with an unknown outcome.

export class Semaphore {
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Resolves to whether a slot became free in time. */
  async acquire(untilMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free--
      return true
    }
    return new Promise((resolve) => {
      const admit = (): void => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(
        () => {
          this.#queue.splice(this.#queue.indexOf(admit), 1)
          resolve(false)
        },
        Math.max(untilMs - performance.now(), 0),
      )
      this.#queue.push(admit)
    })
  }

  release(): void {
    const next = this.#queue.shift()
    if (next) next()
    else this.#free++
  }
}
