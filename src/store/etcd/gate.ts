// So many calls at once and no more: a crowd waits here, where it surely has done nothing, and not inside etcd, where
// its deadlines would run out and nobody could tell what was done.

export class Gate {
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Whether there is a place now. Who has one leaves it. */
  slipIn(): boolean {
    if (this.#free === 0) return false
    this.#free--
    return true
  }

  /** Resolves to whether there was a place in time. */
  async enter(untilMs: number): Promise<boolean> {
    if (this.slipIn()) return true
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

  leave(): void {
    const next = this.#queue.shift()
    if (next) next()
    else this.#free++
  }
}
