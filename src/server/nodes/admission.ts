// Limits how many returning nodes are served at a time. All nodes connect at once after a restart of the server, and their
// writes would delay every other request for seconds.
import { ApiError } from '../../api/errors.ts'

interface AdmissionOptions {
  readonly concurrent?: number
  readonly maxWaiting?: number
}

/** Keeps the store busy without delaying other requests noticeably. */
const defaultConcurrent = 16
/** The last node in the queue waits for some 4 s, and agents give up after 15 s. */
const defaultMaxWaiting = 1_000
/** Refused nodes spread their next try over this range. Nodes without a stream count as lost after 40 s. */
const retryAfterSeconds = { min: 5, max: 20 } as const

export class SyncQueue {
  readonly #concurrent: number
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor({ concurrent = defaultConcurrent, maxWaiting = defaultMaxWaiting }: AdmissionOptions = {}) {
    this.#concurrent = concurrent
    this.#maxWaiting = maxWaiting
  }

  /** Runs `work` when a slot is free, in the order of the calls. Throws TooManyRequests when the queue is full. */
  async admit<T>(node: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#concurrent) this.#running++
    else if (this.#waiting.length < this.#maxWaiting) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else throw tooMany(node)
    try {
      return await work()
    } finally {
      // The slot passes to the next node.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running--
    }
  }
}

function tooMany(node: string): ApiError {
  const { min, max } = retryAfterSeconds
  const seconds = min + Math.floor(Math.random() * (max - min + 1))
  return new ApiError('TooManyRequests', `Many nodes are connecting; node ${node} may connect in ${seconds} s`, {
    kind: 'nodes',
    name: node,
    retryAfterSeconds: seconds,
    hint: 'The agent tries again by itself',
  })
}
