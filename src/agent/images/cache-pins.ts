// Pinned images: fetched before a VM needs them, a few at a time, and never evicted. Their state is reported to the server.
import type { CopyReport, DesiredCache } from '../../api/images/image-cache.ts'
import { timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { exclusively } from '../../platform/parallel.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type RetryOptions, type RetryPolicy, retry, retryPolicies, unlessAborted } from '../../platform/retry.ts'
import { baseKeyOf, type Images, keyOf, type VmImage } from './images.ts'
import type { LocalCopy } from './inventory.ts'

interface PinsOptions {
  readonly images: Images
  /** Called when the report has changed. */
  changed(): void
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy
}

interface Pin {
  readonly image: VmImage
  readonly cancel: AbortController
  /** The key of the copy, once there is one. */
  copy?: string
  state: CopyReport['state']
  percent?: number | undefined
  problem?: string | undefined
}

const maxReported = 256
const maxFetches = 2
/** Each report of progress is a write to the server's database. */
const percentStep = 5
const minuteMs = 60_000

export class Pins {
  readonly #options: PinsOptions
  readonly #pins = new Map<string, Pin>()
  /** Pins that wait for one of `maxFetches` slots. */
  readonly #waiting: (() => void)[] = []
  readonly #working = new Set<Promise<void>>()
  #fetches = 0
  #applying: Promise<void> = Promise.resolve()
  #outdated = new AbortController()
  #isStopped = false

  constructor(options: PinsOptions) {
    this.#options = options
  }

  setDesired(cache: DesiredCache): void {
    this.#outdated.abort()
    this.#outdated = new AbortController()
    const { signal } = this.#outdated
    this.#applying = this.#applying.then(() =>
      this.#untilDone(
        () => this.#apply(cache),
        signal,
        ({ error, attempt }) => this.#options.log.error('failed to cache images', { attempt }, error),
      ),
    )
  }

  /** Pinned copies first, then the others by their last use. */
  report(): CopyReport[] {
    const copies = new Map(this.#options.images.copies().map((copy) => [copy.key, copy]))
    const pinned = [...this.#pins].map(([key, { copy = key, state, percent, problem }]) => ({
      key: copies.has(copy) ? copy : key,
      state,
      ...(percent !== undefined && { percent }),
      ...(problem !== undefined && { problem }),
      ...(state === 'Ready' && factsOf(copies.get(copy))),
    }))
    const shown = new Set(pinned.map(({ key }) => key))
    const others = [...copies.values()]
      .filter(({ key }) => !shown.has(key))
      .toSorted((one, other) => other.usedMs - one.usedMs)
      .map((copy) => ({ key: copy.key, state: 'Ready' as const, ...factsOf(copy) }))
    return [...pinned, ...others].slice(0, maxReported)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#outdated.abort()
    await this.#applying
    for (const { cancel } of this.#pins.values()) cancel.abort()
    await Promise.all(this.#working)
  }

  #untilDone(work: () => Promise<void>, signal: AbortSignal, onWait: RetryOptions['onWait']): Promise<void> {
    const { retry: policy = retryPolicies.costly } = this.#options
    return retry(work, { policy, signal, isRetriable: () => true, onWait }).catch(unlessAborted(signal))
  }

  async #apply({ images: desired, drops }: DesiredCache): Promise<void> {
    const { images, changed } = this.#options
    const keys = new Map(desired.map((image) => [keyOf(image), image]))
    for (const [key, pin] of this.#pins) {
      if (keys.has(key)) continue
      pin.cancel.abort()
      this.#pins.delete(key)
    }
    const failures: unknown[] = []
    const failed = (error: unknown): void => void failures.push(error)
    // The pins are written before anything is fetched, so that a new copy is not evicted.
    await exclusively(this, () => images.pin([...keys.values()]).then(() => this.#fetchAll(keys), failed))
    // Copies are dropped even if writing failed: the disk may be full because of them.
    for (const key of drops) if (!keys.has(key)) await images.drop(key).catch(failed)
    changed()
    if (failures.length > 0) throw failures[0]
  }

  #fetchAll(keys: ReadonlyMap<string, VmImage>): void {
    for (const [key, image] of keys) {
      if (this.#pins.has(key) || this.#isStopped) continue
      const pin: Pin = { image, cancel: new AbortController(), state: 'Fetching' }
      this.#pins.set(key, pin)
      const work = this.#fetch(pin).finally(() => this.#working.delete(work))
      this.#working.add(work)
    }
  }

  async #fetch(pin: Pin): Promise<void> {
    const { images, changed, log } = this.#options
    const { signal } = pin.cancel
    const work = async (): Promise<void> => {
      await this.#inSlot(() => this.#ensure(pin))
      const keep = () => images.pin([...this.#pins.values()].map(({ image }) => image))
      if (pin.image.reference !== undefined) await exclusively(this, keep)
      Object.assign(pin, { state: 'Ready', percent: undefined, problem: undefined })
      changed()
    }
    await this.#untilDone(work, signal, ({ error, attempt }) => {
      const problem = reasonOf(error).slice(0, 1_024)
      Object.assign(pin, { state: 'Failed', problem })
      changed()
      log.warn('failed to cache an image on this node', { name: pin.image.name, problem, attempt })
    })
  }

  /** Fails when the fetch stalls, so that others get the slot. */
  async #ensure(pin: Pin): Promise<void> {
    const { signal } = pin.cancel
    signal.throwIfAborted()
    const stalled = new AbortController()
    const base = await this.#options.images.ensure(pin.image, {
      signal: AbortSignal.any([signal, stalled.signal]),
      progress: (_, percent) => this.#showProgress(pin, percent),
      onWait: (reason) => stalled.abort(new Error(`image ${pin.image.name} could not be fetched: ${reason}`)),
    })
    pin.copy = baseKeyOf(pin.image, base)
  }

  async #inSlot(work: () => Promise<void>): Promise<void> {
    if (this.#fetches < maxFetches) this.#fetches++
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#fetches--
    }
  }

  #showProgress(pin: Pin, percent: number | undefined): void {
    const step = percent === undefined ? pin.percent : Math.floor(percent / percentStep) * percentStep
    if (pin.state === 'Fetching' && step === pin.percent) return
    Object.assign(pin, { state: 'Fetching', percent: step })
    this.#options.changed()
  }
}

const factsOf = (copy: LocalCopy | undefined): Pick<CopyReport, 'bytes' | 'usedAt' | 'pulled'> =>
  copy
    ? {
        bytes: copy.bytes,
        usedAt: timestamp(new Date(Math.floor(copy.usedMs / minuteMs) * minuteMs)),
        ...(copy.pulled && { pulled: copy.pulled }),
      }
    : {}
