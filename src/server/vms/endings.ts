// Counts how many VMs of a namespace ended in the last hour, to estimate how long VMs wait in the queue.
import type { Clock } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'

const windowMs = 3_600_000
const maxTimes = 200

export class Endings {
  readonly #times = new Map<string, number[]>()
  readonly #clock: Clock

  constructor({ vms }: Pick<Collections, 'vms'>, clock: Clock) {
    this.#clock = clock
    vms.view.subscribe((changes) => {
      for (const change of changes)
        if (change.type === 'delete' && change.previous?.value.place) this.#add(change.previous.value.namespace)
    })
  }

  /** The time until `count` more VMs have ended. Undefined if too few have ended to tell. */
  expectedSeconds(namespace: string, count: number): number | undefined {
    const nowMs = this.#clock.now().getTime()
    const recent = (this.#times.get(namespace) ?? []).filter((atMs) => nowMs - atMs < windowMs)
    const [first] = recent
    if (first === undefined || recent.length < 3) return undefined
    // Measured up to now rather than to the last ending, so that the estimate grows during a standstill.
    return Math.ceil((((nowMs - first) / 1_000) * count) / (recent.length - 1))
  }

  #add(namespace: string): void {
    const times = this.#times.get(namespace) ?? []
    this.#times.set(namespace, times)
    if (times.push(this.#clock.now().getTime()) > maxTimes) times.shift()
  }
}
