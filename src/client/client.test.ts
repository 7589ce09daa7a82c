// The client against scripted HTTP servers: requests, responses and retries.
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import {
  addRegistryCredential,
  listRegistryCredentials,
  removeRegistryCredential,
} from '../api/access/registry-credentials.ts'
import { ApiError } from '../api/errors.ts'
import { getClusterInfo, getMetrics, getReadiness } from '../api/service/service.ts'
import { deployVm } from '../api/vms/vms.ts'
import { callUntilDone } from './call-until-done.ts'
import { type Client, type ClientOptions, createClient } from './client.ts'
import { httpTransport } from './http.ts'
import { ConnectionError } from './transport.ts'

const params = { namespace: 'svc-default' }
const body = { server: 'https://ghcr.io', username: 'ci', password: 'planted-secret' }

async function serve(listener: RequestListener) {
  const seen: { method: string; url: string; key: string | undefined; port: number | undefined }[] = []
  const server = createServer((request, response) => {
    const { method = '', url = '', headers, socket } = request
    seen.push({ method, url, key: headers['idempotency-key'] as string | undefined, port: socket.remotePort })
    request.resume().on('end', () => listener(request, response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const waits: number[] = []
  const client = (options: Partial<ClientOptions> = {}) =>
    createClient({
      baseUrl,
      transport: httpTransport(),
      token: 'a-token',
      random: () => 1,
      wait: async (ms) => void waits.push(ms),
      ...options,
    })
  return {
    seen,
    waits,
    client,
    baseUrl,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const status = (reason: string, code: number, message = 'no') =>
  JSON.stringify({
    kind: 'Status',
    message,
    reason,
    code,
    hint: 'do this',
    requestId: 'r-1',
    details: { name: 'n', kind: 'k' },
  })

describe('client', () => {
  it('the client needs what the operation needs, at compile time', () => {
    const never = (client: ReturnType<typeof createClient>) => [
      // @ts-expect-error a parameter of the path is missing
      () => client.call(listRegistryCredentials),
      // @ts-expect-error the body is missing
      () => client.call(addRegistryCredential, { params }),
      // @ts-expect-error a field of the body is missing
      () => client.call(addRegistryCredential, { params, body: { server: 'https://ghcr.io' } }),
      // @ts-expect-error the operation does not have this parameter
      () => client.call(getClusterInfo, { params }),
      async () => (await client.call(getClusterInfo)).version.length,
    ]
    assert.equal(typeof never, 'function')
  })

  it('the client sends path, query, token and body, and returns the answer', async () => {
    await using service = await serve((request, response) => {
      assert.equal(request.headers.authorization, 'Bearer a-token')
      response.end(JSON.stringify({ items: [] }))
    })
    const query = { limit: 5, labelSelector: 'a=b c' }
    const answer = await service.client().call(listRegistryCredentials, { params: { namespace: 'a/b' }, query })
    assert.deepEqual(answer, { items: [] })
    assert.equal(
      service.seen[0]?.url,
      '/api/v1/namespaces/a%2Fb/secrets/registrycredentials?limit=5&labelSelector=a%3Db+c',
    )
  })

  it('the client refuses names that would change the path', async () => {
    await using service = await serve((_, response) => response.end('{}'))
    for (const namespace of ['', '.', '..']) {
      await assert.rejects(service.client().call(listRegistryCredentials, { params: { namespace } }), {
        reason: 'Invalid',
      })
    }
    assert.equal(service.seen.length, 0)
  })

  it('the client turns a Status into the error that it describes', async () => {
    await using service = await serve((_, response) =>
      response.writeHead(409).end(status('AlreadyExists', 409, 'is there')),
    )
    const error = await service
      .client()
      .call(addRegistryCredential, { params, body })
      .catch((caught: unknown) => caught)
    assert.ok(error instanceof ApiError)
    assert.deepEqual(
      [error.reason, error.code, error.message, error.requestId],
      ['AlreadyExists', 409, 'is there', 'r-1'],
    )
    assert.deepEqual(error.options, { name: 'n', kind: 'k', hint: 'do this' })
  })

  const foreign = [
    [404, '<html>nope</html>', 'NotFound'],
    [401, '', 'Unauthorized'],
    [502, '<html>', 'ServiceUnavailable'],
    [504, 'upstream', 'Timeout'],
    [418, '{}', 'BadRequest'],
    [302, '', 'BadRequest'],
    [500, '[]', 'InternalError'],
    [409, 'null', 'Conflict'],
  ] as const
  for (const [code, text, reason] of foreign) {
    it(`the client judges a foreign ${code} by its code`, async () => {
      await using service = await serve((_, response) => response.writeHead(code).end(text))
      const client = service.client({ retry: { attempts: 1 } })
      await assert.rejects(client.call(getClusterInfo), { name: 'ApiError', reason })
    })
  }

  it('the client rejects responses that are not from svc3', async () => {
    await using service = await serve((_, response) => response.end('<html>welcome</html>'))
    await assert.rejects(service.client().call(getClusterInfo), /is not JSON/)
    await using other = await serve((_, response) => response.end('{"hello":1}'))
    await assert.rejects(other.client().listAll(listRegistryCredentials, { params }), /is not a list/)
  })

  it('the client reads answers that are text, and second successes', async () => {
    await using service = await serve((request, response) => {
      if (request.url === '/metrics') response.end('up 1\n')
      else response.writeHead(503).end('{"status":"starting","message":"wait"}')
    })
    assert.equal(await service.client().call(getMetrics), 'up 1\n')
    const { status, value } = await service.client().exchange(getReadiness)
    assert.deepEqual([status, value.status], [503, 'starting'])
    assert.equal(service.seen.length, 2)
  })

  it('the client follows the pages of a list', async () => {
    await using service = await serve((request, response) => {
      const next = new URL(request.url ?? '', 'http://x').searchParams.get('continue')
      response.end(JSON.stringify(next ? { items: [next] } : { items: ['first'], continue: 'second' }))
    })
    assert.deepEqual(await service.client().listAll(listRegistryCredentials, { params }), ['first', 'second'])
  })

  it('the client repeats a POST with one key after lost connections and 503, honouring Retry-After', async () => {
    let count = 0
    await using service = await serve((request, response) => {
      count++
      if (count === 1) request.socket.destroy()
      else if (count === 2) response.writeHead(503, { 'retry-after': '7' }).end(status('ServiceUnavailable', 503))
      else response.writeHead(201).end('{"server":"https://ghcr.io"}')
    })
    const { status: code } = await service.client().exchange(addRegistryCredential, { params, body })
    assert.equal(code, 201)
    assert.equal(new Set(service.seen.map(({ key }) => key)).size, 1)
    assert.ok(service.seen[0]?.key)
    assert.deepEqual(service.waits, [100, 7_200])
  })

  it('the client gives up after four attempts, and at once if the server requests too long a wait', async () => {
    await using service = await serve((request) => request.socket.destroy())
    await assert.rejects(service.client().call(getClusterInfo), { name: 'ConnectionError', fault: 'lost' })
    assert.equal(service.seen.length, 4)
    await using busy = await serve((_, response) => response.writeHead(429, { 'retry-after': '3600' }).end(''))
    await assert.rejects(busy.client().call(getClusterInfo), { reason: 'TooManyRequests' })
    assert.equal(busy.seen.length, 1)
  })

  it('a long call is repeated after 503, unless the server requests a wait that is longer than its retries', async () => {
    const waits = [0, 3_600]
    let calls = 0
    const call = async () => {
      const retryAfterSeconds = waits[calls++]
      if (retryAfterSeconds === undefined) throw new Error('it was repeated')
      throw new ApiError('ServiceUnavailable', 'not now', { retryAfterSeconds })
    }
    const input = { params: { namespace: 'svc-default' }, body: {}, idempotencyKey: 'key' }
    await assert.rejects(callUntilDone({ call } as unknown as Client, deployVm, input, 60_000), { code: 503 })
    assert.equal(calls, 2)
  })

  it('the client never repeats a DELETE, and sends it on a new connection', async () => {
    let lose = false
    await using service = await serve((request, response) =>
      lose ? request.socket.destroy() : response.end('{"items":[]}'),
    )
    const client = service.client()
    await client.call(listRegistryCredentials, { params })
    await client.call(listRegistryCredentials, { params })
    lose = true
    const remove = client.call(removeRegistryCredential, { params, body: { server: 'https://ghcr.io' } })
    await assert.rejects(remove, { fault: 'lost' })
    const [first, second, third, ...more] = service.seen.map(({ port }) => port)
    assert.equal(first, second)
    assert.notEqual(second, third)
    assert.deepEqual(more, [])
  })

  it('the client reports a refused connection at once', async () => {
    // Not a port that was just released: another process may have taken it.
    await using gone = await serve(() => undefined)
    const error = await gone
      .client({ baseUrl: 'http://127.0.0.1:1' })
      .call(getClusterInfo)
      .catch((caught: unknown) => caught)
    assert.ok(error instanceof ConnectionError)
    assert.equal(error.fault, 'refused')
    assert.match(error.message, /Cannot reach http:\/\/127\.0\.0\.1:\d+: connection refused/)
    assert.deepEqual(gone.waits, [])
  })

  it('the client stops waiting after its timeout, and when the caller aborts', async () => {
    await using service = await serve(() => undefined)
    await assert.rejects(service.client({ timeoutMs: 20 }).call(getClusterInfo), {
      name: 'ConnectionError',
      fault: 'timeout',
    })
    const controller = new AbortController()
    const call = service.client().call(getClusterInfo, { signal: controller.signal })
    controller.abort(new Error('enough'))
    await assert.rejects(call, /enough/)
  })

  it('the client does not read endless responses', async () => {
    await using service = await serve((_, response) => {
      const chunk = Buffer.alloc(1024 * 1024, 32)
      const pump = (): void => {
        while (!response.destroyed && response.write(chunk));
      }
      response.on('drain', pump).on('error', () => undefined)
      pump()
    })
    await assert.rejects(service.client().call(getClusterInfo), /longer than 67108864 bytes/)
  })
})
