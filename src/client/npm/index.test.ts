// The client of the npm package against scripted servers: defaults, retries, watches and errors.
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { allOperations, publishedOperations } from '../../api/index.ts'
import { paramNames } from '../../api/operation.ts'
import type * as declared from './declared.ts'
import { ApiError, ConnectionError, createClient } from './index.ts'
import { hasMethod } from './offered.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** One script per request; the last serves all that follow. */
async function serve(...scripts: Answer[]) {
  const seen: { line: string; key: unknown; token: unknown; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      const { 'idempotency-key': key, authorization: token } = request.headers
      seen.push({ line: `${request.method} ${request.url}`, key, token, body })
      scripts[Math.min(seen.length, scripts.length) - 1]?.(response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    seen,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const json =
  (value: unknown): Answer =>
  (response) =>
    void response.end(JSON.stringify(value))
const refuse =
  (code: number, reason: string, headers: Record<string, string> = {}): Answer =>
  (response) => {
    const causes = [{ field: 'cpu', reason: 'FieldValueInvalid', message: 'no' }]
    const body = { kind: 'Status', message: 'Refused', reason, code, hint: 'Do this', requestId: 'r-1' }
    response.writeHead(code, headers).end(JSON.stringify({ ...body, details: { causes } }))
  }
const cut: Answer = (response) => void response.destroy()
const change = (type: string, version: string): string =>
  `${JSON.stringify({ type, object: { name: 'demo', resourceVersion: version } })}\n`

describe('svc3/client', () => {
  it('svc3/client has a method for every operation that is a request and an answer in JSON, and no other', () => {
    const client = createClient({ url: 'http://127.0.0.1' }) as unknown as Record<string, unknown>
    const others = ['listAll', 'watch', 'stream']
    const expected = publishedOperations.filter(hasMethod).map(({ id }) => id)
    assert.deepEqual(Object.keys(client).sort(), [...expected, ...others].sort())
  })

  it('svc3/client has no path parameter whose name is that of an option', () => {
    const options = ['query', 'body', 'signal', 'timeoutMs', 'idempotencyKey', 'resourceVersion']
    const names = new Set(allOperations.flatMap(({ path }) => paramNames(path)))
    assert.deepEqual(
      options.filter((option) => names.has(option)),
      [],
    )
  })

  it('svc3/client declares what the error classes have', () => {
    const asDeclared = (error: ApiError): declared.ApiError => error
    const asDeclaredToo = (error: ConnectionError): declared.ConnectionError => error
    assert.deepEqual([typeof asDeclared, typeof asDeclaredToo], ['function', 'function'])
  })

  it('svc3/client needs what the operation needs, at compile time', () => {
    const never = (client: declared.Client) => [
      // @ts-expect-error the VM is missing
      () => client.deleteVm({}),
      // @ts-expect-error the body is missing
      () => client.deployVm({}),
      // @ts-expect-error the client does not have this list
      () => client.watch('getVm'),
      // @ts-expect-error a namespace is not deleted by default
      () => client.deleteNamespace({}),
      async () => (await client.deployVm({ body: { image: 'demo' } })).ssh?.toFixed(),
    ]
    assert.equal(typeof never, 'function')
  })

  it('svc3/client fills in the namespace, and asks for a token for every request', async () => {
    await using server = await serve(json({ items: [] }))
    let count = 0
    const client = createClient({ url: `${server.url}/`, token: async () => `t${++count}`, namespace: 'svc-ios' })
    await client.listVms({ query: { limit: 2 } })
    await client.getVm({ vm: 'a b', namespace: 'svc-web' })
    assert.deepEqual(
      server.seen.map(({ line, token }) => [line, token]),
      [
        ['GET /api/v1/namespaces/svc-ios/vms?limit=2', 'Bearer t1'],
        ['GET /api/v1/namespaces/svc-web/vms/a%20b', 'Bearer t2'],
      ],
    )
  })

  it('svc3/client sends a change again with the same key when the service is busy or the connection is cut', async () => {
    const busy = refuse(503, 'ServiceUnavailable', { 'retry-after': '0' })
    await using server = await serve(busy, cut, json({ name: 'demo' }))
    const vm = await createClient({ url: server.url }).deployVm({ body: { image: 'demo' } })
    assert.equal(vm.name, 'demo')
    assert.deepEqual(
      server.seen.map(({ line, body }) => `${line} ${body}`),
      Array(3).fill('POST /api/v1/namespaces/svc-default/vms {"image":"demo"}'),
    )
    assert.equal(new Set(server.seen.map(({ key }) => key)).size, 1)
  })

  it('svc3/client throws ApiError with status, reason, hint, causes and how long to wait', async () => {
    await using server = await serve(refuse(429, 'TooManyRequests', { 'retry-after': '7' }))
    const client = createClient({ url: server.url, retry: false })
    const error = await client.deployVm({ body: {}, idempotencyKey: 'mine' }).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof ApiError)
    const { status, reason, hint, retryAfterMs, requestId, causes, message } = error
    assert.deepEqual(
      { status, reason, hint, retryAfterMs, requestId, message },
      {
        status: 429,
        reason: 'TooManyRequests',
        hint: 'Do this',
        retryAfterMs: 7_000,
        requestId: 'r-1',
        message: 'Refused',
      },
    )
    assert.equal(causes[0]?.field, 'cpu')
    assert.deepEqual([server.seen.length, server.seen[0]?.key], [1, 'mine'])
  })

  it('svc3/client ends a call with the reason of its signal, and reports a server that does not answer', async () => {
    let url: string
    {
      await using server = await serve(() => undefined)
      url = server.url
      const reason = new Error('enough')
      const client = createClient({ url })
      await assert.rejects(client.getHealth({ signal: AbortSignal.abort(reason) }), reason)
      const controller = new AbortController()
      const deployed = client.deployVm({ body: { image: 'demo' }, signal: controller.signal })
      controller.abort(reason)
      await assert.rejects(deployed, reason)
      await assert.rejects(client.getHealth({ timeoutMs: 20 }), { name: 'ConnectionError', fault: 'timeout' })
    }
    await assert.rejects(createClient({ url }).getHealth(), (error) => {
      assert.ok(error instanceof ConnectionError)
      return error.fault === 'refused' && error.message.includes(url) && error.hint !== ''
    })
  })

  it('svc3/client does not follow a redirect with its token', async () => {
    const redirect: Answer = (response) => void response.writeHead(302, { location: '/elsewhere' }).end()
    await using server = await serve(redirect)
    await assert.rejects(createClient({ url: server.url, token: 't' }).getClusterInfo(), { name: 'ApiError' })
    assert.equal(server.seen.length, 1)
  })

  it('svc3/client lists all pages', async () => {
    await using server = await serve(json({ items: [{ name: 'a' }], continue: 'x' }), json({ items: [{ name: 'b' }] }))
    const vms = await createClient({ url: server.url }).listAll('listVms', { query: { labelSelector: 'team=ios' } })
    assert.deepEqual(
      vms.map(({ name }) => name),
      ['a', 'b'],
    )
    assert.match(server.seen[1]?.line ?? '', /labelSelector=team%3Dios&continue=x$/)
  })

  it('svc3/client resumes a watch after a cut from the last version, and ends it with the signal', async () => {
    const first: Answer = (response) =>
      void response.write(change('ADDED', '4') + change('BOOKMARK', '5') + change('MODIFIED', '6'), () =>
        setTimeout(() => response.destroy(), 20),
      )
    const second: Answer = (response) => void response.write(change('DELETED', '7'))
    await using server = await serve(first, second)
    const controller = new AbortController()
    const events: string[] = []
    const watched = createClient({ url: server.url }).watch('listVms', { signal: controller.signal })
    for await (const { type, object } of watched) {
      events.push(`${type} ${object.resourceVersion}`)
      if (type === 'DELETED') controller.abort()
    }
    assert.deepEqual(events, ['ADDED 4', 'BOOKMARK 5', 'MODIFIED 6', 'DELETED 7'])
    const path = 'GET /api/v1/namespaces/svc-default/vms?watch=true'
    assert.deepEqual(
      server.seen.map(({ line }) => line),
      [path, `${path}&resourceVersion=6`],
    )
  })

  it('svc3/client closes the connection of a watch that its reader leaves', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    await using server = await serve((response) => {
      response.on('close', resolve)
      response.write(change('ADDED', '4'))
    })
    for await (const event of createClient({ url: server.url }).watch('listVms')) {
      assert.equal(event.type, 'ADDED')
      break
    }
    await closed
  })

  it('svc3/client streams bytes as they arrive, and passes everything to a custom fetch', async () => {
    await using server = await serve((response) => void response.write('one\n', () => response.end('two\n')))
    const asked: string[] = []
    const fetching: typeof fetch = (input, init) => {
      asked.push(`${init?.method} ${String(input)}`)
      return fetch(input, init)
    }
    const client = createClient({ url: server.url, fetch: fetching })
    let text = ''
    for await (const chunk of client.stream('getVmLogs', { vm: 'demo', query: { tail: 2 } }))
      text += new TextDecoder().decode(chunk)
    assert.equal(text, 'one\ntwo\n')
    assert.deepEqual(asked, [`GET ${server.url}/api/v1/namespaces/svc-default/vms/demo/logs?tail=2`])
  })

  it('svc3/client follows logs across a lost connection, and throws when the VM was deleted', async () => {
    await using server = await serve(
      (response) => void response.write('one\n', () => setTimeout(() => response.destroy(), 20)),
      (response) => void response.end('two\n'),
      refuse(404, 'NotFound'),
    )
    let text = ''
    const follow = async (): Promise<void> => {
      const client = createClient({ url: server.url, namespace: 'svc-ios' })
      for await (const chunk of client.stream('getVmLogs', { vm: 'demo', query: { follow: true, tail: 5 } }))
        text += new TextDecoder().decode(chunk)
    }
    await assert.rejects(follow(), { name: 'ApiError', reason: 'NotFound' })
    assert.equal(text, 'one\ntwo\n')
    const path = 'GET /api/v1/namespaces/svc-ios/vms/demo/logs?follow=true&tail='
    assert.deepEqual(
      server.seen.map(({ line }) => line),
      [`${path}5`, `${path}0`, `${path}0`],
    )
  })
})
