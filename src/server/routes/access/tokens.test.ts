// A refused login: a general message for the caller, the reason in the log, and the token in neither.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ApiError } from '../../../api/errors.ts'
import { createLog } from '../../../platform/log.ts'
import { type TokenServices, tokens } from './tokens.ts'

it('the reason of a refused login is logged, without the token', async () => {
  const lines: string[] = []
  const refused = new ApiError('Unauthorized', 'Unauthorized', {
    cause: new Error('the ID token has no claim "email"'),
  })
  const given: unknown[] = []
  const services = {
    identity: {
      verify: (...args: unknown[]) => {
        given.push(...args)
        return Promise.reject(refused)
      },
    },
    log: createLog('warn', (line) => lines.push(line)),
  } as unknown as TokenServices
  const { exchangeToken } = tokens(services)
  const call = { body: { idToken: 'id-secret', accessToken: 'access-secret' }, now: new Date() }
  await assert.rejects(async () => exchangeToken(call as Parameters<typeof exchangeToken>[0]), refused)
  assert.deepEqual(given, ['id-secret', 'access-secret'])
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /"level":"warn".*"reason":"the ID token has no claim \\"email\\""/)
  assert.doesNotMatch(lines.join(), /secret/)
})
