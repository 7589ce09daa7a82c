// Images that are to be on this node before anybody deploys from them: fetched some at a time, tried again when that
// fails, and kept. Reports to the server how far they are.
import type { CopyReport, DesiredCache } from '../../api/images/image-cache.ts'
import { timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { backOff, type RetryPolicy, wait } from '../../rules/retry.ts'
import { type DesiredImage, type Images, keyOf } from './images.ts'
import type { LocalCopy } from './inventory.ts'

interface Pins {
  setDesired(cache: DesiredCache): void
  /** The pinned first, then by use. */
  report(): CopyReport[]
  stop(): Promise<void>
}

interface PinsOptions {
  readonly images: Images
  /** What is reported to the server has changed. */
  changed(): void
  readonly log: Log
  /** Tests only. */
  readonly retry?: RetryPolicy
}

interface Pin {
  readonly image: DesiredImage
  readonly cancel: AbortController
  state: CopyReport['state']
  percent?: number
  problem?: string
}

const maxReported = 256
const fetchesAtOnce = 2
/** Progress is a write to the server's database: it goes in steps. */
const percentStep = 5
const minuteMs = 60_000
const patience: RetryPolicy = { attempts: Infinity, firstDelayMs: 2_000, maxDelayMs: 300_000, maxRetryAfterMs: 0 }

export function createPins({ images, changed, log, retry = patience }: PinsOptions): Pins {
  const pins = new Map<string, Pin>()
  const waiting: (() => void)[] = []
  const working = new Set<Promise<void>>()
  let free = fetchesAtOnce
  let last: Promise<void> = Promise.resolve()
  let following = new AbortController()
  let isStopped = false

  const turn = async (work: () => Promise<void>): Promise<void> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    else free--
    try {
      await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }

  const fetch = async (pin: Pin): Promise<void> => {
    const { signal } = pin.cancel
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await turn(async () => {
          signal.throwIfAborted()
          // What stands still does not keep others from their turn.
          const standing = new AbortController()
          await images.ensure(pin.image, {
            signal: AbortSignal.any([signal, standing.signal]),
            progress: (_, percent) => show(pin, percent),
            waits: (reason) => standing.abort(new Error(`image ${pin.image.name} could not be fetched: ${reason}`)),
          })
        })
        pin.state = 'Ready'
        delete pin.percent
        delete pin.problem
        return changed()
      } catch (error) {
        if (signal.aborted) return
        pin.state = 'Failed'
        pin.problem = reasonOf(error).slice(0, 1_024)
        changed()
        log.warn('failed to cache an image on this node', { name: pin.image.name, problem: pin.problem, attempt })
        await wait(backOff(Math.min(attempt, 12), retry, Math.random), signal).catch(() => undefined)
      }
    }
  }
  const show = (pin: Pin, percent: number | undefined): void => {
    const step = percent === undefined ? pin.percent : Math.floor(percent / percentStep) * percentStep
    if (pin.state === 'Fetching' && step === pin.percent) return
    pin.state = 'Fetching'
    if (step !== undefined) pin.percent = step
    changed()
  }

  const tried = (work: Promise<void>, attempt: number): Promise<boolean> =>
    work.then(
      () => true,
      (error: unknown) => {
        log.error('failed to cache images', { attempt }, error)
        return false
      },
    )

  const begin = (keys: ReadonlyMap<string, DesiredImage>): void => {
    for (const [key, image] of keys) {
      if (pins.has(key) || isStopped) continue
      const pin: Pin = { image, cancel: new AbortController(), state: 'Fetching' }
      pins.set(key, pin)
      const work = fetch(pin).finally(() => working.delete(work))
      working.add(work)
    }
  }

  const follow = async ({ images: desired, drops }: DesiredCache, signal: AbortSignal): Promise<void> => {
    const keys = new Map(desired.map((image) => [keyOf(image), image]))
    for (const [key, pin] of pins) {
      if (keys.has(key)) continue
      pin.cancel.abort()
      pins.delete(key)
    }
    for (let attempt = 1; !signal.aborted; attempt++) {
      // Written down before anything is fetched: what is pinned is not evicted in between.
      const isKept = await tried(images.keep([...keys.keys()]), attempt)
      let isDone = isKept
      // In any case: the disk may be too full to write on because of what is to go.
      for (const key of drops) if (!keys.has(key) && !(await tried(images.drop(key), attempt))) isDone = false
      if (isKept) begin(keys)
      changed()
      if (isDone) return
      await wait(backOff(Math.min(attempt, 12), retry, Math.random), signal).catch(() => undefined)
    }
  }

  return {
    setDesired(cache) {
      following.abort()
      following = new AbortController()
      const { signal } = following
      last = last.then(() => follow(cache, signal))
    },
    report() {
      const copies = new Map(images.copies().map((copy) => [copy.key, copy]))
      const pinned = [...pins].map(([key, { state, percent, problem }]) => ({
        key,
        state,
        ...(percent !== undefined && { percent }),
        ...(problem !== undefined && { problem }),
        ...(state === 'Ready' && factsOf(copies.get(key))),
      }))
      const others = [...copies.values()]
        .filter(({ key }) => !pins.has(key))
        .toSorted((one, other) => other.usedMs - one.usedMs)
        .map((copy) => ({ key: copy.key, state: 'Ready' as const, ...factsOf(copy) }))
      return [...pinned, ...others].slice(0, maxReported)
    },
    async stop() {
      isStopped = true
      following.abort()
      await last
      for (const { cancel } of pins.values()) cancel.abort()
      await Promise.all(working)
    },
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
