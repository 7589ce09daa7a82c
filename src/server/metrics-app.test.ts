// The port for metrics: what it serves without a token, and what it refuses.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startService } from '../../test/support/rigs/service.ts'
import { createMetricsApp } from './metrics-app.ts'

const start = async (limits = {}) => {
  const stack = new AsyncDisposableStack()
  const service = stack.use(await startService({ settings: { limits } }))
  const app = createMetricsApp(service.services)
  stack.defer(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const get = (path: string, method = 'GET') => fetch(`${url}${path}`, { method })
  return { stack, service, get }
}

it('the port for metrics serves /metrics without a token, and nothing else', async () => {
  const { stack, service, get } = await start()
  await using _ = stack
  const answer = await get('/metrics')
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await answer.text(), /^svc3_build_info\{version="0\.0\.0-test"/m)
  assert.equal((await get('/metrics', 'HEAD')).status, 200)
  for (const path of [
    '/',
    '/healthz',
    '/api/v1/namespaces',
    '/console/',
    '/metrics/x',
    '/oidc/.well-known/openid-configuration',
  ])
    assert.equal((await get(path)).status, 404, path)
  const posted = await get('/metrics', 'POST')
  assert.equal(posted.status, 404)
  assert.equal(((await posted.json()) as { hint: string }).hint, 'This port serves /metrics only')
  assert.equal((await service.call('GET', '/metrics', { token: null })).status, 401)
})

it('the port for metrics charges the address, for metrics and for other paths', async () => {
  const { stack, get } = await start({ anonymousPerMinute: 60 })
  await using _ = stack
  const statuses: number[] = []
  for (let index = 0; index < 40; index++) statuses.push((await get(index % 2 ? '/metrics' : '/x')).status)
  assert.deepEqual([...new Set(statuses)].sort(), [200, 404, 429])
  assert.equal(statuses.at(-1), 429)
})
