// Rate limits: a caller with a valid token has their own budget; everything else is charged to its address, so that a
// flood of bad tokens does not lock out good ones.
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../api/errors.ts'
import { callerKey, type Principal } from '../../auth/principal.ts'
import { networkOf } from '../../rules/addresses.ts'
import type { Settings } from '../config/settings.ts'
import { createRateLimit } from './rate-limit.ts'

export interface RateLimits {
  /** A refusal, or undefined: the request may proceed. */
  charge(
    request: Pick<FastifyRequest, 'ip'>,
    principal: Principal | undefined,
    operation?: string,
  ): ApiError | undefined
}

/** How nodes show who they are. A whole fleet may come from one address, all at once, after a power cut. */
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
