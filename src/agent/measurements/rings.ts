// The measured values of the last hour in steps of ten seconds, and of the last day in steps of a minute, in rings of fixed size.
// The value of a step is the mean of what was measured in it.

export const fineSeconds = 10
const coarseSeconds = 60
const fineSlots = 360
const coarseSlots = 1_440

type Values<N extends string> = Readonly<Partial<Record<N, number>>>

interface MeasuredRange<N extends string> {
  readonly stepSeconds: number
  /** The time of the first value, in seconds since 1970. */
  readonly start: number
  readonly values: Readonly<Record<N, readonly (number | null)[]>>
}

class Ring<N extends string> {
  readonly stepSeconds: number
  readonly #names: readonly N[]
  readonly #slots: number
  readonly #sums: Float64Array
  readonly #counts: Uint16Array
  #latest = 0
  #first = 0

  constructor(names: readonly N[], stepSeconds: number, slots: number) {
    this.#names = names
    this.stepSeconds = stepSeconds
    this.#slots = slots
    this.#sums = new Float64Array(names.length * slots)
    this.#counts = new Uint16Array(names.length * slots)
  }

  /** Ignores values older than the newest: after the clock was set back, all until it has caught up. */
  add(atSeconds: number, values: Values<N>): void {
    const step = Math.floor(atSeconds / this.stepSeconds)
    if (step < this.#latest) return
    this.#advance(step)
    for (const [index, name] of this.#names.entries()) {
      const value = values[name]
      if (value === undefined || !Number.isFinite(value)) continue
      const at = index * this.#slots + (step % this.#slots)
      this.#sums[at] = (this.#sums[at] ?? 0) + value
      this.#counts[at] = (this.#counts[at] ?? 0) + 1
    }
  }

  #advance(step: number): void {
    if (this.#first === 0) this.#first = step
    for (let passed = Math.max(this.#latest + 1, step - this.#slots + 1); passed <= step; passed++)
      for (const index of this.#names.keys()) {
        const at = index * this.#slots + (passed % this.#slots)
        this.#sums[at] = 0
        this.#counts[at] = 0
      }
    this.#latest = Math.max(this.#latest, step)
  }

  /** The newest `count` steps up to now; fewer if measuring began later. */
  read(nowSeconds: number, count: number): MeasuredRange<N> {
    const last = Math.floor(nowSeconds / this.stepSeconds)
    const first = last - Math.min(count, this.#slots) + 1
    const from = this.#first === 0 ? last : Math.min(last, Math.max(this.#first, first))
    const steps = Array.from({ length: last - from + 1 }, (_, index) => from + index)
    const valueAt = (index: number, step: number): number | null => {
      if (step > this.#latest || step <= this.#latest - this.#slots) return null
      const at = index * this.#slots + (step % this.#slots)
      const samples = this.#counts[at] ?? 0
      return samples === 0 ? null : Number(((this.#sums[at] ?? 0) / samples).toPrecision(5))
    }
    const values = this.#names.map((name, index) => [name, steps.map((step) => valueAt(index, step))])
    return { stepSeconds: this.stepSeconds, start: from * this.stepSeconds, values: Object.fromEntries(values) }
  }
}

export class Rings<N extends string> {
  readonly #fine: Ring<N>
  readonly #coarse: Ring<N>

  constructor(names: readonly N[]) {
    this.#fine = new Ring(names, fineSeconds, fineSlots)
    this.#coarse = new Ring(names, coarseSeconds, coarseSlots)
  }

  add(atSeconds: number, values: Values<N>): void {
    this.#fine.add(atSeconds, values)
    this.#coarse.add(atSeconds, values)
  }

  read(nowSeconds: number, minutes: number): MeasuredRange<N> {
    const ring = minutes * 60 <= fineSlots * fineSeconds ? this.#fine : this.#coarse
    return ring.read(nowSeconds, Math.ceil((minutes * 60) / ring.stepSeconds))
  }

  /** The last day, to be saved over a restart. */
  save(nowSeconds: number): MeasuredRange<N> {
    return this.#coarse.read(nowSeconds, coarseSlots)
  }

  /** Restores a saved day into empty rings. */
  load({ start, stepSeconds, values }: MeasuredRange<string>): void {
    if (stepSeconds !== coarseSeconds) return
    const length = Math.max(0, ...Object.values(values).map((each) => each.length))
    for (let index = 0; index < length; index++) {
      const step = Object.entries(values).flatMap(([name, each]) => (each[index] == null ? [] : [[name, each[index]]]))
      if (step.length > 0) this.#coarse.add(start + index * stepSeconds, Object.fromEntries(step))
    }
  }
}
