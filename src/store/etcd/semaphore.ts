// So many calls at once and no more: a crowd waits here, where it surely has done nothing, and not inside etcd, where
// its deadlines would run out and nobody could tell what was done.

export class Semaphore {
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Whether there is a place now. Whoever has one releases it. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  /** Resolves to whether there was a place in time. */
  async acquire(untilMs: number): Promise<boolean> {
    if (this.tryAcquire()) return true
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
