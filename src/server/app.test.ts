// Behaviour of all requests: lenient parsing, limits, request ids, slow and hostile connections, probes, logs.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { credentialsPath as path, startService, type TestService } from '../../test/support/rigs/service.ts'
import { eventually } from '../../test/support/tools/eventually.ts'

let service: TestService
beforeEach(async () => {
  service = await startService()
})
afterEach(() => service[Symbol.asyncDispose]())

const body = JSON.stringify({ server: 'https://ghcr.io', username: 'bot', password: 'x' })
const authorization = (): string => `Bearer ${service.adminToken}`

describe('sloppy clients', () => {
  for (const type of [
    'application/json; charset=utf-8',
    'application/json;charset=ISO-8859-1',
    'text/plain',
    'application/x-www-form-urlencoded',
  ]) {
    it(`sloppy clients may send JSON as ${type}`, async () => {
      const answer = await service.app.inject({
        method: 'POST',
        url: `${path}/add`,
        headers: { authorization: authorization(), 'content-type': type },
        payload: body,
      })
      assert.equal(answer.statusCode, 201, answer.payload)
    })
  }

  it('sloppy clients may leave Content-Type out', async () => {
    const base = await service.listen()
    const { port } = new URL(base)
    const reply = await raw(
      Number(port),
      `POST ${path}/add HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization()}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    )
    assert.match(reply, /^HTTP\/1\.1 201 /)
  })

  it('sloppy clients may send a GET with a body, and an empty body with a JSON type', async () => {
    const { port } = new URL(await service.listen())
    const get = await raw(
      Number(port),
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization()}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
    )
    assert.match(get, /^HTTP\/1\.1 200 .*\{"items":\[\]\}$/s)
    const empty = await service.app.inject({
      method: 'GET',
      url: path,
      headers: { authorization: authorization(), 'content-type': 'application/json' },
    })
    assert.equal(empty.statusCode, 200)
    const removal = await service.app.inject({
      method: 'DELETE',
      url: `${path}/remove`,
      headers: { authorization: authorization(), 'content-type': 'application/json' },
    })
    assert.equal(removal.statusCode, 400)
    assert.equal(removal.json().kind, 'Status')
  })

  it('sloppy clients may not send bytes that are not UTF-8, or half a character', async () => {
    const send = (payload: Buffer | string) =>
      service.app.inject({
        method: 'POST',
        url: `${path}/add`,
        headers: { authorization: authorization(), 'content-type': 'application/json' },
        payload,
      })
    const latin = Buffer.from('{"server":"https://ghcr.io","username":"m\u00fcller","password":"x"}', 'latin1')
    assert.equal((await send(latin)).json().message, 'The request body is not UTF-8')
    const half = await send('{"server":"https://ghcr.io","username":"a","password":"p\\udfff"}')
    assert.equal(half.statusCode, 400)
    assert.match(half.json().message, /half a character/)
    const whole = await send('{"server":"https://ghcr.io","username":"a","password":"p\\ud83d\\udd11 \\\\udfff"}')
    assert.equal(whole.statusCode, 201, whole.payload)
    const [entry] = service.services.collections.registryCredentials.list()
    assert.ok(entry)
    assert.equal(service.services.secrets.open(entry.key, entry.value), 'p\u{1f511} \\udfff')
  })

  it('sloppy clients may put slashes before and after a path, and nothing else', async () => {
    const headers = { authorization: authorization() }
    const status = async (url: string, method: 'GET' | 'POST' = 'GET') =>
      (await service.app.inject({ method, url, headers })).statusCode
    for (const url of [`/${path}`, `${path}/`, `//${path}//?limit=1`, '//healthz/', '/api/v1/swagger/'])
      assert.equal(await status(url), 200, url)
    assert.equal(await status('/api/v1/namespaces/svc-default/nodes/none/cordon/', 'POST'), 404)
    const within = [
      '/api/v1/namespaces//svc-default',
      '/api/v1/namespaces/svc-default/vms/%2e%2e/',
      '//console//',
      '//',
    ]
    for (const url of within) assert.equal(await status(url), 404, url)
  })

  it('sloppy clients may write bearer in any case', async () => {
    const answer = await service.app.inject({ url: path, headers: { authorization: `bearer ${service.adminToken}` } })
    assert.equal(answer.statusCode, 200)
  })
})

describe('limits', () => {
  it('limits: a body over 1 MiB: 413', async () => {
    const answer = await service.call('POST', `${path}/add`, {
      body: JSON.stringify({ password: 'x'.repeat(1_100_000) }),
    })
    assert.equal(answer.status, 413)
    assert.equal(answer.body.reason, 'RequestEntityTooLarge')
  })

  it('limits: JSON that nests deeper than 64 levels: 400, with an Idempotency-Key too', async () => {
    const nested = (depth: number): string => `${'{"a":['.repeat(depth / 2)}${']}'.repeat(depth / 2)}`
    for (const depth of [66, 5_000, 100_000]) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': `deep-${depth}` }
      const { status, body } = await service.call('POST', `${path}/add`, { body: nested(depth), headers })
      assert.deepEqual([status, body.message], [400, 'The request body nests deeper than 64 levels'])
    }
    const { text } = await service.call('POST', `${path}/add`, {
      body: `{"username":"${'['.repeat(1_000)}"}`,
      headers: { 'content-type': 'application/json' },
    })
    assert.doesNotMatch(text, /nests/, 'brackets in a text do not nest')
  })

  it('limits: the refusal of a body with very many wrong fields names 20 and says that there are more', async () => {
    const metadata = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key${index}`, {}]))
    const { status, body } = await service.call('POST', '/api/v1/namespaces/svc-default/vms', { body: { metadata } })
    assert.deepEqual([status, body.details.causes.length], [400, 20])
    assert.match(body.message, /; and many more$/)
  })

  it('limits: too many requests of one token: 429 with Retry-After, while another token is served', async () => {
    // One per minute, so that no further request is allowed during the test.
    await using limited = await startService({ settings: { limits: { requestsPerMinute: 1 } } })
    const answers = await Promise.all(Array.from({ length: 20 }, () => limited.call('GET', path)))
    const refused = answers.filter(({ status }) => status === 429)
    assert.equal(refused.length, 19)
    assert.equal(refused[0]?.body.reason, 'TooManyRequests')
    assert.ok(Number(refused[0]?.headers['retry-after']) > 0)
    const other = await limited.tokenFor({ kind: 'user', name: 'other@example.com', admin: true })
    assert.equal((await limited.call('GET', path, { token: other })).status, 200)
  })

  it('limits: guessing tokens: 429 by address, while a good token is served', async () => {
    await using limited = await startService({ settings: { limits: { anonymousPerMinute: 1 } } })
    await limited.call('GET', path)
    const codes = []
    for (let index = 0; index < 8; index++)
      codes.push((await limited.call('GET', path, { token: `guess${index}` })).status)
    assert.deepEqual(codes.slice(-3), [429, 429, 429])
    assert.equal((await limited.call('GET', path)).status, 200)
    assert.equal((await limited.call('GET', '/healthz', { token: null })).status, 200)
  })

  it('limits: too many watches: 429', async () => {
    await using limited = await startService({ settings: { limits: { watches: 1 } } })
    const base = await limited.listen()
    const headers = { authorization: `Bearer ${limited.adminToken}` }
    const first = await fetch(`${base}${path}?watch=true`, { headers })
    const second = await fetch(`${base}${path}?watch=true`, { headers })
    assert.equal(second.status, 429)
    await first.body?.cancel()
    await second.body?.cancel()
  })

  it('limits: a path or header that is too long: 4xx', async () => {
    assert.equal((await service.call('GET', `/api/v1/namespaces/${'x'.repeat(2_000)}`)).status, 404)
    const { port } = new URL(await service.listen())
    const reply = await raw(Number(port), `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`)
    assert.match(reply, /^HTTP\/1\.1 431 .*"kind":"Status".*"hint":/s)
  })

  it('limits: bytes that are not HTTP: 400 with a Status', async () => {
    const { port } = new URL(await service.listen())
    assert.match(await raw(Number(port), 'hello\r\n\r\n'), /^HTTP\/1\.1 400 .*"kind":"Status"/s)
  })

  it('limits: a refused upgrade gets its whole answer, and the server closes the connection', async () => {
    const { port } = new URL(await service.listen())
    const accepted = once(service.app.server, 'connection')
    const client = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
    const [connection] = (await accepted) as [net.Socket]
    client.write('GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    const pieces: Buffer[] = []
    for await (const piece of client.iterator({ destroyOnReturn: false })) pieces.push(piece)
    const [, head = '', text = ''] = /^(HTTP\/1\.1 200 .*?)\r\n\r\n(.*)$/s.exec(Buffer.concat(pieces).toString()) ?? []
    assert.ok(text.length > 100_000, head)
    assert.equal(Buffer.byteLength(text), Number(/content-length: (\d+)/i.exec(head)?.[1]))
    await eventually(() => assert.ok(connection.destroyed), 10_000).finally(() => client.destroy())
  })

  it('limits: clients that send too slowly get a 408, while others are served', async () => {
    await using hurried = await startService({ settings: { limits: { headersSeconds: 1, requestSeconds: 2 } } })
    const { port } = new URL(await hurried.listen())
    const slow = Array.from({ length: 20 }, () => raw(Number(port), 'GET /healthz HTTP/1.1\r\nX-Slow: '))
    const slower = raw(
      Number(port),
      `POST ${path}/add HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${hurried.adminToken}\r\nContent-Length: 100\r\n\r\n{`,
    )
    const good = await fetch(`http://127.0.0.1:${port}/healthz`)
    assert.equal(good.status, 200)
    for (const reply of await Promise.all([...slow, slower])) assert.match(reply, /^HTTP\/1\.1 408 .*"kind":"Status"/s)
  })

  it('limits: a flood of bad tokens does not block a valid token on first use', async () => {
    await using limited = await startService({ settings: { limits: { anonymousPerMinute: 1 } } })
    for (let index = 0; index < 5; index++) await limited.call('GET', path, { token: `junk${index}` })
    assert.equal((await limited.call('GET', path, { token: 'junk' })).status, 429)
    const fresh = await limited.tokenFor({ kind: 'user', name: 'new@example.com', admin: true })
    assert.equal((await limited.call('GET', path, { token: fresh })).status, 200)
  })

  it('limits: HEAD never opens a watch, and one caller cannot take all of them', async () => {
    await using limited = await startService({ settings: { limits: { watchesPerCaller: 1 } } })
    const base = await limited.listen()
    const headers = { authorization: `Bearer ${limited.adminToken}` }
    assert.equal((await fetch(`${base}${path}?watch=true`, { method: 'HEAD', headers })).status, 200)
    assert.equal(limited.services.metrics.watches.open, 0)
    const first = await fetch(`${base}${path}?watch=true`, { headers })
    assert.equal((await fetch(`${base}${path}?watch=true`, { headers })).status, 429)
    const other = await limited.tokenFor({ kind: 'user', name: 'other@example.com', admin: true })
    const theirs = await fetch(`${base}${path}?watch=true`, { headers: { authorization: `Bearer ${other}` } })
    assert.equal(theirs.status, 200)
    await Promise.all([first.body?.cancel(), theirs.body?.cancel()])
  })
})

describe('behind a proxy', () => {
  it('behind a trusted proxy, callers are identified by its header; headers of others are ignored', async () => {
    const limits = { anonymousPerMinute: 1 }
    const ask = async (to: TestService, from: string): Promise<number> =>
      (await to.call('GET', '/api/v1/cluster-info', { token: null, headers: { 'x-forwarded-for': from } })).status
    await using trusting = await startService({ settings: { limits, trustedProxies: ['127.0.0.1'] } })
    assert.deepEqual(
      [await ask(trusting, '192.0.2.1'), await ask(trusting, '192.0.2.1'), await ask(trusting, '192.0.2.2')],
      [200, 429, 200],
    )
    await using other = await startService({ settings: { limits } })
    assert.deepEqual([await ask(other, '192.0.2.1'), await ask(other, '192.0.2.2')], [200, 429])
  })
})

describe('every answer', () => {
  it('every answer carries the request id, the caller’s own when it is plain', async () => {
    assert.equal(
      (await service.call('GET', path, { headers: { 'x-request-id': 'build-17.3' } })).headers['x-request-id'],
      'build-17.3',
    )
    const odd = await service.call('GET', '/nowhere', { headers: { 'x-request-id': 'a b<c>' } })
    assert.equal(odd.headers['x-request-id'], odd.body.requestId)
    assert.notEqual(odd.body.requestId, 'a b<c>')
  })

  it('every answer to an unknown path or method is a Status with a hint', async () => {
    const missing = await service.call('GET', '/api/v1/nothing')
    assert.equal(missing.status, 404)
    assert.match(missing.body.message, /not found/)
    const method = await service.call('PUT', path)
    assert.equal(method.status, 405)
    assert.match(method.body.message, /use GET/)
    assert.equal(method.headers.allow, 'GET')
  })

  it('every answer to an internal error hides the cause, which is in the log', async () => {
    const { collections } = service.services
    Object.defineProperty(collections.registryCredentials, 'at', {
      value: () => {
        throw new Error('a path like /root/secret')
      },
    })
    const answer = await service.call('POST', `${path}/add`, { body })
    assert.equal(answer.status, 500)
    assert.ok(!answer.text.includes('/root/secret') && !answer.text.includes(' at '))
    const line = service.logLines.find(
      (each) => each.includes(answer.body.requestId) && each.includes('"level":"error"'),
    )
    assert.match(line ?? '', /a path like/)
  })
})

describe('probes', () => {
  it('probes report readiness', async () => {
    assert.deepEqual((await service.call('GET', '/readyz', { token: null })).body, { status: 'ok', message: 'ready' })
    service.stop()
    const stopping = await service.call('GET', '/readyz', { token: null })
    assert.equal(stopping.status, 503)
    assert.equal(stopping.body.status, 'stopping')
  })

  it('metrics count requests by route, not by path', async () => {
    await service.call('GET', path)
    await service.call('GET', path, { token: 'bad' })
    const { text } = await service.call('GET', '/metrics')
    assert.match(text, /svc3_build_info\{version="0\.0\.0-test"/)
    assert.match(
      text,
      /svc3_http_request_duration_seconds_count\{method="GET",route="\/api\/v1\/namespaces\/:namespace\/secrets\/registrycredentials",status="200"\} 1/,
    )
    assert.match(text, /svc3_http_denied_total\{route="[^"]+",status="401"\} 1/)
  })

  it('metrics of a namespace are shown only to its developers and to administrators', async () => {
    const { services } = service
    services.metrics.observe({ ...services, isLeading: () => true })
    await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
    for (const namespace of ['svc-default', 'svc-ios'])
      await service.call('PUT', `/api/v1/namespaces/${namespace}/quota`, { body: { cpu: 4 } })
    const { adminToken, devToken } = service
    const told = async (token: string): Promise<string[]> => {
      const { text } = await service.call('GET', '/metrics', { token })
      assert.match(text, /^svc3_vms_pending_oldest_seconds 0$/m)
      return [...text.matchAll(/^svc3_quota_limit\{namespace="([^"]+)",resource="cpu"\} 4$/gm)].map(
        ([, name]) => name ?? '',
      )
    }
    assert.deepEqual(await told(adminToken), ['svc-default', 'svc-ios'])
    assert.deepEqual(await told(devToken), ['svc-default'])
    await service.call('POST', '/api/v1/namespaces/svc-ios/rolebindings/svc-dev/subjects/add', {
      body: { users: ['dev@example.com'] },
    })
    assert.deepEqual(await told(devToken), ['svc-default', 'svc-ios'])
  })

  it('probes: the API document and its page are public, and the page loads nothing from other hosts', async () => {
    const document = await service.call('GET', '/api/v1/openapi.json', { token: null })
    assert.equal(document.body.openapi, '3.1.0')
    const page = await service.call('GET', '/api/v1/swagger', { token: null })
    assert.match(page.text, /swagger-ui-bundle\.js/)
    assert.ok(!/https?:\/\//.test(page.text))
    assert.match(String(page.headers['content-security-policy']), /default-src 'none'/)
    for (const file of ['files/swagger-ui-bundle.js', 'files/swagger-ui.css', 'start.js']) {
      assert.equal((await service.call('GET', `/api/v1/swagger/${file}`, { token: null })).status, 200)
    }
    assert.equal((await service.call('GET', '/api/v1/swagger/files/package.json', { token: null })).status, 404)
  })
})

/** Sends bytes and reads until the other side closes. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text))
    let reply = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => {
      reply += chunk
    })
    socket.on('close', () => resolve(reply))
    socket.on('error', reject)
  })
}
