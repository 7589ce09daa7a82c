// Refusals in the server log.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../api/errors.ts'
import { NoContentError } from '../../images/content/content.ts'
import { silentLog } from '../../platform/log.ts'
import { logFailure, refusalOf } from './refusals.ts'

function levelOf(error: unknown): string | undefined {
  let level: string | undefined
  const log = { ...silentLog, warn: () => (level = 'warn'), error: () => (level = 'error') }
  logFailure(log, refusalOf(error), { route: '/' })
  return level
}

describe('refusals in the log', () => {
  it('an intended refusal is logged as a warning, a fault of the service as an error', () => {
    assert.equal(levelOf(new ApiError('ServiceUnavailable', 'Node mac-1 of VM a is not responding')), 'warn')
    assert.equal(levelOf(new ApiError('Timeout', 'VM a was not deployed within 10 min')), 'warn')
    assert.equal(levelOf(new TypeError('x is undefined')), 'error')
    assert.equal(levelOf(new ApiError('ServiceUnavailable', 'Not enough disk', { cause: new Error('full') })), 'error')
    assert.equal(levelOf(new NoContentError('a', 'b')), 'error')
    assert.equal(levelOf(new ApiError('NotFound', 'VM a not found')), undefined)
  })
})
