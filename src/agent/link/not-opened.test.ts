// Who is blamed for a connection that was not opened: the proxy, the server's version, or nobody.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ApiError, type Reason } from '../../api/errors.ts'
import { errorFromAnswer } from '../../client/answer.ts'
import { ConnectionError } from '../../client/transport.ts'
import { notOpened } from './not-opened.ts'

const address = 'https://svc3.example.com'
/** Of something that is not svc3. */
const foreign = (status: number): unknown => errorFromAnswer(status, '<h1>No</h1>', `${address}/api`, undefined)
const own = (reason: Reason): ApiError => {
  const text = JSON.stringify(new ApiError(reason, 'Said by svc3').toStatus('request-1'))
  return errorFromAnswer(new ApiError(reason, '').code, text, address, undefined)
}
const textOf = (error: unknown): string => {
  const found = notOpened(address, error)
  return found === error || !(found instanceof ConnectionError) ? 'as it was' : `${found.message}. ${found.hint}`
}

for (const status of [200, 302, 400, 401, 403, 404, 405, 407, 426, 501])
  it(`a foreign answer ${status} in place of a connection is that of a proxy`, () =>
    assert.equal(
      textOf(foreign(status)),
      `The proxy in front of ${address} did not pass a WebSocket (HTTP ${status}). ` +
        'Let it pass Upgrade for /api/: see docs/operate/install.md, Behind a proxy',
    ))

for (const status of [408, 429, 500, 502, 503, 504])
  it(`a foreign answer ${status} in place of a connection is that of a proxy whose server is away`, () =>
    assert.equal(textOf(foreign(status)), 'as it was'))

it('a server that got no Upgrade has a proxy in front of it', () =>
  assert.match(textOf(own('BadRequest')), /did not pass a WebSocket \(HTTP 400\)/))

it('a server that knows no connections of agents is to be upgraded', () =>
  assert.equal(
    textOf(own('NotFound')),
    `The server at ${address} is older than 3.0.0-alpha.23 and keeps no connections of agents. Upgrade the server first`,
  ))

for (const reason of ['Unauthorized', 'Conflict', 'TooManyRequests', 'ServiceUnavailable', 'InternalError'] as const)
  it(`a server that refuses a connection with ${reason} is understood as it speaks`, () =>
    assert.equal(textOf(own(reason)), 'as it was'))

it('a connection that was refused is nothing new, one that was cut off may be the work of a proxy', () => {
  const of = (fault: 'refused' | 'lost') => new ConnectionError(fault, address, `Cannot reach ${address}`, 'Try again')
  assert.equal(textOf(of('refused')), 'as it was')
  assert.match(textOf(of('lost')), /before a WebSocket was open\. If this repeats: does a proxy .* pass Upgrade/)
})
