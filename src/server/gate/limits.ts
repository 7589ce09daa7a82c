// Rate limits: a caller with a valid token has their own budget. Every other request is charged to its address, so that
// a flood of bad tokens does not lock out valid ones.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { callerKey, type Principal } from '../../auth/principal.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Settings } from '../config/settings.ts'
import { createRateLimit } from './rate-limit.ts'

export interface RateLimits {
  /** Returns a refusal if the budget is used up. */
  charge(
    request: Pick<FastifyRequest, 'ip'>,
    principal: Principal | undefined,
    operation?: string,
  ): ApiError | undefined
}

/** How nodes authenticate. After a power cut a whole fleet may do so at once, from one address. */
const arrivals = new Set(['joinCluster', 'issueAgentToken', 'replaceNodeKey'])

export function createLimits({ limits }: Pick<Settings, 'limits'>): RateLimits {
  const rate = createRateLimit()
  return {
    charge(request, principal, operation = '') {
      const seconds = principal
        ? rate.take(callerKey(principal), limits.requestsPerMinute)
        : arrivals.has(operation)
          ? rate.take(`arrivals ${networkOf(request.ip)}`, limits.requestsPerMinute)
          : rate.take(`address ${networkOf(request.ip)}`, limits.anonymousPerMinute)
      return seconds === 0 ? undefined : tooMany(seconds)
    },
  }
}

const tooMany = (seconds: number): ApiError =>
  new ApiError('TooManyRequests', `Too many requests; try again in ${seconds} s`, {
    retryAfterSeconds: seconds,
    hint: 'Wait for the time in Retry-After',
  })
