// Every route of both ports makes a charge before it does anything, except probes.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import { startKubernetes } from '../../../test/support/rigs/kubernetes.ts'
import { startService } from '../../../test/support/rigs/service.ts'
import { type App, type ChargedRoute, chargeRoutes } from './charges.ts'

/** Both ports, with the routes of each, and budgets of one request. */
async function startWithRoutes() {
  const routes: RouteOptions[][] = []
  const watch = (message: unknown): void => {
    const own: RouteOptions[] = []
    routes.push(own)
    const { fastify: app } = message as { fastify: FastifyInstance }
    app.addHook('onRoute', (route) => void own.push(route))
  }
  subscribe('fastify.initialization', watch)
  const limits = { anonymousPerMinute: 1, requestsPerMinute: 1 }
  const service = await startService({ settings: { limits, legacy: { enabled: true } } })
  const kube = startKubernetes(service)
  await Promise.all([service.app.ready(), kube.app.ready()])
  unsubscribe('fastify.initialization', watch)
  const ports = [service, kube].map(({ app }, index) => ({ app, routes: routes[index] ?? [] }))
  return {
    ports,
    [Symbol.asyncDispose]: async () => {
      await kube[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

const urlOf = ({ url }: RouteOptions): string => url.replaceAll(/:\w+/g, 'x').replace('*', 'x')

describe('charges', () => {
  it('every route without a budget left is refused before anything else, and probes are answered', async () => {
    await using service = await startWithRoutes()
    const probes: string[] = []
    for (const { app, routes } of service.ports) {
      assert.ok(routes.length > 20, 'the routes were seen')
      const ask = async (method: string, url: string): Promise<number> =>
        (await app.inject({ method: method as 'GET', url, headers: { authorization: 'Bearer guess' } })).statusCode
      // One request for each of the budgets: of the address, of files, and of arriving nodes.
      await ask('GET', '/nowhere')
      for (let files = 0; files < 3; files++) await ask('GET', '/console/')
      await ask('POST', '/api/v1/agent/token')
      for (const route of routes)
        for (const method of [route.method].flat()) {
          const status = await ask(method, urlOf(route))
          if (route.config?.charge !== 'probe') assert.deepEqual([method, route.url, status], [method, route.url, 429])
          else {
            assert.notEqual(status, 429)
            probes.push(`${method} ${route.url}`)
          }
        }
      assert.equal(await ask('GET', '/nowhere'), 429)
      assert.equal(await ask('GET', '/%zz'), 429, 'a path that is no URL')
      const body = { method: 'POST', url: '/nowhere', headers: { 'content-type': 'application/json' } } as const
      assert.equal((await app.inject({ ...body, payload: '{' })).statusCode, 429, 'the body is not read')
    }
    const paths = ['/healthz', '/readyz', '/healthz', '/livez', '/readyz']
    assert.deepEqual(probes.toSorted(), paths.flatMap((path) => [`GET ${path}`, `HEAD ${path}`]).toSorted())
  })

  it('a route without a charge does not compile, and is refused when it is registered', async () => {
    const app = fastify()
    chargeRoutes(app, { charge: () => undefined })
    const charged = app as unknown as App
    const handler = async () => 'free'
    // @ts-expect-error without a charge
    const free: ChargedRoute = { method: 'GET', url: '/', handler }
    assert.throws(() => charged.route(free), /The route GET \/ has no charge/)
    // @ts-expect-error no shorthand
    assert.throws(() => charged.get('/', handler), /has no charge/)
    app.register(async (scope) => void scope.get('/inner', handler))
    await assert.rejects(async () => app.ready(), /The route GET \/inner has no charge/)
  })
})

describe('files', () => {
  it('many people at one address load the console, and a flood is refused', async () => {
    await using service = await startService()
    const load = async (): Promise<number> =>
      (await service.call('GET', '/', { token: null, headers: { accept: 'text/html' } })).status
    // Ten first visits of a page with a hundred files.
    for (let files = 0; files < 1_000; files++) assert.equal(await load(), 302)
    const more = await Promise.all(Array.from({ length: 1_000 }, load))
    assert.ok(more.filter((status) => status === 429).length > 500)
    assert.equal((await service.call('GET', '/api/v1/cluster-info', { token: null })).status, 200)
  })
})

describe('the Host of a request', () => {
  it('a request with two is refused on both ports', async () => {
    await using service = await startService()
    await using kube = startKubernetes(service)
    for (const [app, url] of [
      [service.app, '/api/v1/namespaces'],
      [kube.app, '/apis'],
    ] as const) {
      const headers = { authorization: `Bearer ${service.adminToken}` }
      const twice = { ...headers, host: ['a.example', 'b.example'] as never }
      const { statusCode, body } = await app.inject({ url, headers: twice })
      assert.equal(statusCode, 400)
      assert.match(JSON.parse(body).message, /^The request has more than one Host/)
      assert.equal((await app.inject({ url, headers })).statusCode, 200)
    }
  })

  it('a request without one, or with an unknown expectation, is charged like others', async () => {
    await using service = await startService({ settings: { limits: { anonymousPerMinute: 12 } } })
    const port = Number(new URL(await service.listen()).port)
    const ask = async (lines: readonly string[]): Promise<string> => {
      const socket = net.connect(port, '127.0.0.1')
      socket.write([...lines, 'Connection: close', '', ''].join('\r\n'))
      return text(socket)
    }
    const noHost = ['GET /api/v1/cluster-info HTTP/1.1']
    assert.match(await ask(noHost), /^HTTP\/1\.1 400 [\s\S]*The request has no Host/)
    assert.match(await ask(['GET /api/v1/cluster-info HTTP/1.0']), /^HTTP\/1\.1 200 /)
    assert.match(await ask(noHost), /^HTTP\/1\.1 429 /)
    assert.match(await ask(['GET /api/v1/cluster-info HTTP/1.1', 'Host: x', 'Expect: x']), /^HTTP\/1\.1 429 /)
  })
})
