// Rate limits: a token bucket per caller, with ten seconds' worth of tokens. A caller with a valid token has their own budget.
// Every other request is charged to its address, so that a flood of bad tokens does not lock out valid ones.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { callerKey, type Principal } from '../../auth/principal.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Settings } from '../config/settings.ts'

interface Bucket {
  level: number
  atMs: number
}

const burstSeconds = 10
/** With more callers at once, the least recent one is evicted. */
const maxBuckets = 20_000
/** The operations by which nodes get tokens. After a power cut, all nodes may call them at once from one address. */
const arrivals = new Set(['joinCluster', 'issueAgentToken', 'replaceNodeKey'])
const filesPerRequest = 10

/** Each server counts in memory by its own monotonic clock, because this runs for every request. */
export class RateLimits {
  readonly #limits: Pick<Settings['limits'], 'requestsPerMinute' | 'anonymousPerMinute'>
  readonly #nowMs: () => number
  readonly #buckets = new Map<string, Bucket>()

  constructor(
    limits: Pick<Settings['limits'], 'requestsPerMinute' | 'anonymousPerMinute'>,
    nowMs = () => performance.now(),
  ) {
    this.#limits = limits
    this.#nowMs = nowMs
  }

  /** Returns a refusal if the budget is used up. `kind`: the operation, or the charge of its route. */
  charge(request: Pick<FastifyRequest, 'ip'>, principal: Principal | undefined, kind = ''): ApiError | undefined {
    const { requestsPerMinute, anonymousPerMinute } = this.#limits
    if (principal) return this.#take(callerKey(principal), requestsPerMinute)
    if (arrivals.has(kind)) return this.#take(`arrivals ${networkOf(request.ip)}`, requestsPerMinute)
    if (kind === 'file') return this.#take(`files ${networkOf(request.ip)}`, anonymousPerMinute * filesPerRequest)
    return this.#take(`address ${networkOf(request.ip)}`, anonymousPerMinute)
  }

  #take(key: string, perMinute: number): ApiError | undefined {
    const perMs = perMinute / 60_000
    const capacity = Math.max(1, perMs * burstSeconds * 1_000)
    const nowMs = this.#nowMs()
    const bucket = this.#buckets.get(key) ?? { level: capacity, atMs: nowMs }
    bucket.level = Math.min(capacity, bucket.level + (nowMs - bucket.atMs) * perMs)
    bucket.atMs = nowMs
    if (!this.#buckets.delete(key) && this.#buckets.size >= maxBuckets)
      this.#buckets.delete(this.#buckets.keys().next().value as string)
    this.#buckets.set(key, bucket)
    if (bucket.level < 1) return tooMany(Math.max(1, Math.ceil((1 - bucket.level) / perMs / 1_000)))
    bucket.level -= 1
    return undefined
  }
}

const tooMany = (seconds: number): ApiError =>
  new ApiError('TooManyRequests', `Too many requests; try again in ${seconds} s`, {
    retryAfterSeconds: seconds,
    hint: 'Wait for the time in Retry-After',
  })
