// Nodes that come back all at once, after a restart or a cut, are let in one after the other: so many at a time, behind them a
// queue of some seconds, and everybody else is told when it is their turn. What else is asked meanwhile is served in between. Who
// has begun goes before who has not: otherwise a node would wait for all others between two of its requests, and give up.
import { ApiError } from '../../api/errors.ts'

interface ArrivalsOptions {
  /** At a time. */
  readonly places?: number
  /** Behind them; who would wait for longer is sent away. */
  readonly longestWaitMs?: number
  readonly nowMs?: () => number
}

/** Enough to keep the store busy, and few enough that what they cost together is no pause for others. */
const defaultPlaces = 16
/** Begun in one turn of the event loop: whatever else has come meanwhile is served between two turns. */
const maxPerTurn = 4
/** Well within the time that an agent waits for an answer. */
const defaultLongestWaitMs = 12_000
/** Until the first ones are through. */
const assumedMs = 4
/** Nodes without a stream count as lost after 40 s. */
const longestSeconds = 20
/** A node that is quiet for so long begins anew. */
const begunMs = 30_000
/** How much one arrival says about the next: little, because a server that has just begun is several times as slow as it will be. */
const weight = 0.02

type Go = () => void

export class Arrivals {
  readonly #places: number
  readonly #longestWaitMs: number
  readonly #nowMs: () => number
  /** By node: when its last request came, until it has arrived. */
  readonly #beganMs = new Map<string, number>()
  /** Those with an earlier request behind them. */
  readonly #begun: Go[] = []
  readonly #queue: Go[] = []
  #busy = 0
  /** Begun in this turn. */
  #started = 0
  #turn: NodeJS.Immediate | undefined
  /** From one of the queue to the next. */
  #paceMs = assumedMs
  /** When the last one of the queue went, while there are others. */
  #wentMs: number | undefined
  /** When the next one that is sent away is to come. */
  #turnMs = 0

  constructor(options: ArrivalsOptions = {}) {
    this.#places = options.places ?? defaultPlaces
    this.#longestWaitMs = options.longestWaitMs ?? defaultLongestWaitMs
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  /**
   * A request of a node that comes. The first one is refused, with its turn, where too many wait already; later ones wait however
   * many there are, because their number is bounded by those who began.
   */
  admit<T>(node: string, work: () => Promise<T>): Promise<T> {
    const nowMs = this.#nowMs()
    const beganMs = this.#beganMs.get(node)
    const hasBegun = beganMs !== undefined && nowMs - beganMs < begunMs
    if (!hasBegun && this.#queue.length * this.#paceMs >= this.#longestWaitMs) throw this.#turnOf(node)
    this.#note(node, nowMs)
    return this.#inTurn(hasBegun ? this.#begun : this.#queue, work)
  }

  /** It has come: its next request, one day, is a first one. */
  arrived(node: string): void {
    this.#beganMs.delete(node)
  }

  /** The oldest come first. */
  #note(node: string, nowMs: number): void {
    this.#beganMs.delete(node)
    this.#beganMs.set(node, nowMs)
    for (const [other, atMs] of this.#beganMs) {
      if (nowMs - atMs < begunMs) break
      this.#beganMs.delete(other)
    }
  }

  async #inTurn<T>(queue: Go[], work: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      queue.push(resolve)
      this.#start()
    })
    try {
      return await work()
    } finally {
      this.#busy--
      this.#start()
    }
  }

  #start(): void {
    while (this.#busy < this.#places && this.#started < maxPerTurn) {
      const next = this.#begun.shift() ?? this.#nextOfQueue()
      if (!next) return
      this.#busy++
      this.#started++
      this.#turn ??= setImmediate(() => {
        this.#turn = undefined
        this.#started = 0
        this.#start()
      })
      next()
    }
  }

  #nextOfQueue(): Go | undefined {
    const next = this.#queue.shift()
    const nowMs = this.#nowMs()
    if (next && this.#wentMs !== undefined) this.#paceMs += weight * (nowMs - this.#wentMs - this.#paceMs)
    this.#wentMs = this.#queue.length > 0 ? nowMs : undefined
    return next
  }

  #turnOf(node: string): ApiError {
    const nowMs = this.#nowMs()
    const queueEndMs = nowMs + this.#queue.length * this.#paceMs
    this.#turnMs = Math.min(Math.max(this.#turnMs, queueEndMs) + this.#paceMs, nowMs + longestSeconds * 1_000)
    const seconds = Math.max(1, Math.ceil((this.#turnMs - nowMs) / 1_000))
    return new ApiError('TooManyRequests', `Many nodes are connecting; node ${node} is next in ${seconds} s`, {
      kind: 'nodes',
      name: node,
      retryAfterSeconds: seconds,
      hint: 'The agent tries again by itself',
    })
  }
}
