// Explanations of connections that were not opened: the proxy, the version of the server, or a temporary failure.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ApiError, type Reason } from '../../api/errors.ts'
import { errorFromAnswer } from '../../client/answer.ts'
import { ConnectionError } from '../../client/transport.ts'
import { notOpened } from './not-opened.ts'

const address = 'https://svc3.example.com'
/** An answer of another program than svc3. */
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
  it(`status ${status} of another program means that a proxy does not pass WebSockets`, () =>
    assert.equal(
      textOf(foreign(status)),
      `The proxy in front of ${address} did not pass a WebSocket (HTTP ${status}). ` +
        'Let it pass Upgrade for /api/: see docs/operate/install.md, Behind a proxy',
    ))

for (const status of [408, 429, 500, 502, 503, 504])
  it(`status ${status} of another program means that the server behind a proxy is down`, () =>
    assert.equal(textOf(foreign(status)), 'as it was'))

it('a server that received no Upgrade is behind a proxy', () =>
  assert.match(textOf(own('BadRequest')), /did not pass a WebSocket \(HTTP 400\)/))

for (const reason of [
  'Unauthorized',
  'NotFound',
  'Conflict',
  'TooManyRequests',
  'ServiceUnavailable',
  'InternalError',
] as const)
  it(`the refusal ${reason} of a server is reported as it is`, () => assert.equal(textOf(own(reason)), 'as it was'))

it('a refused connection is reported as it is; one that was cut off may be due to a proxy', () => {
  const of = (fault: 'refused' | 'lost') => new ConnectionError(fault, address, `Cannot reach ${address}`, 'Try again')
  assert.equal(textOf(of('refused')), 'as it was')
  assert.match(textOf(of('lost')), /before a WebSocket was open\. If this repeats: does a proxy .* pass Upgrade/)
})
