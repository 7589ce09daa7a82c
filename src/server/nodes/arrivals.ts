// Nodes that come back all at once, after a restart or a cut, are let in one after the other: so many at a time, a short
// queue behind them, and everybody else is told when it is their turn. What else is asked meanwhile is served in between.
import { ApiError } from '../../api/errors.ts'

interface ArrivalsOptions {
  /** At a time. */
  readonly places?: number
  /** Behind them; who is further behind is sent away. */
  readonly queue?: number
  readonly nowMs?: () => number
}

/** Enough to keep the store busy, and few enough that what they cost together is no pause for others. */
const defaultPlaces = 16
/** Well within the time that an agent waits for an answer. */
const defaultQueue = 256
/** Until the first ones are through. */
const assumedMs = 30
/** Nodes without a stream count as lost after 40 s. */
const longestSeconds = 20
/** How much one arrival says about the next. */
const weight = 0.05

export class Arrivals {
  readonly #places: number
  readonly #queueLength: number
  readonly #nowMs: () => number
  readonly #queue: (() => void)[] = []
  #busy = 0
  /** What one takes from its place to its end. */
  #tookMs = assumedMs
  /** When the next one that is sent away is to come. */
  #turnMs = 0

  constructor({ places = defaultPlaces, queue = defaultQueue, nowMs = () => performance.now() }: ArrivalsOptions = {}) {
    this.#places = places
    this.#queueLength = queue
    this.#nowMs = nowMs
  }

  /** The first request of a node that comes: refused, with its turn, where too many wait already. */
  begin<T>(node: string, work: () => Promise<T>): Promise<T> {
    if (this.#queue.length >= this.#queueLength) throw this.#turnOf(node)
    return this.goOn(work)
  }

  /** A later one: waits however many there are, because their number is bounded by those who began. */
  async goOn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#busy < this.#places) this.#busy++
    else await new Promise<void>((resolve) => this.#queue.push(resolve))
    const startMs = this.#nowMs()
    try {
      return await work()
    } finally {
      this.#tookMs += weight * (this.#nowMs() - startMs - this.#tookMs)
      const next = this.#queue.shift()
      // The place goes on to them.
      if (next) next()
      else this.#busy--
    }
  }

  #turnOf(node: string): ApiError {
    const nowMs = this.#nowMs()
    const eachMs = this.#tookMs / this.#places
    const queueEndMs = nowMs + this.#queue.length * eachMs
    this.#turnMs = Math.min(Math.max(this.#turnMs, queueEndMs) + eachMs, nowMs + longestSeconds * 1_000)
    const seconds = Math.max(1, Math.ceil((this.#turnMs - nowMs) / 1_000))
    return new ApiError('TooManyRequests', `Many nodes are connecting; node ${node} is next in ${seconds} s`, {
      kind: 'nodes',
      name: node,
      retryAfterSeconds: seconds,
      hint: 'The agent tries again by itself',
    })
  }
}
