// Long-lived responses over real connections: the agent's stream, tunnels by WebSocket, logs.
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, it } from 'node:test'
import WebSocket, { createWebSocketStream } from 'ws'
import { placedVm } from '../../../bench/records.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { ApiError } from '../../api/errors.ts'
import { dialTunnel } from '../../client/tunnel.ts'
import { Tunnels } from './tunnels.ts'

let service: TestService
let scheduler: AsyncDisposable
let node: NodeStandIn
let url: string

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  node = await startNode(service)
  url = await service.listen()
  await service.call('POST', `${vms}`, { body: { image: 'intel', name: 'demo' } })
})
afterEach(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const vms = '/api/v1/namespaces/svc-default/vms'
// For all tests of this file together, also on a busy machine.
const signal = AbortSignal.timeout(170_000)
const connect = (path: string, token: string | undefined = service.adminToken) =>
  dialTunnel({ baseUrl: url, path, token, signal })

/** Waits for the next message of that type. */
async function dialled(): Promise<{ tunnel: string; to: string; follow?: boolean; tail?: number }> {
  for (;;) {
    const found = node.told.findIndex(({ type }) => type === 'DIAL')
    if (found >= 0) return node.told.splice(found, 1)[0] as never
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function readAll(stream: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += chunk
  return text
}

it('connections to VMs that are being opened are limited in each namespace', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const tunnels = new Tunnels({ prefix: '', tell: async () => true })
  const vm = (namespace: string) => ({ ...placedVm(1, { name: 'node-1' }, 1), namespace })
  const waiting = Array.from({ length: 250 }, () =>
    tunnels.dial(vm('svc-a'), 'ssh').catch((error: ApiError) => error.code),
  )
  await assert.rejects(tunnels.dial(vm('svc-a'), 'ssh'), { code: 429 })
  const other = tunnels.dial(vm('svc-b'), 'ssh').catch((error: ApiError) => error.code)
  t.mock.timers.tick(60_000)
  assert.deepEqual(new Set(await Promise.all([...waiting, other])), new Set([503]))
})

describe('a tunnel', () => {
  it('a tunnel carries bytes in both directions, and ends on both sides', async () => {
    const opening = connect(`${vms}/demo/connect?port=ssh`)
    const { tunnel, to } = await dialled()
    assert.equal(to, 'ssh')
    const agentSide = await connect(`/api/v1/agent/tunnels/${tunnel}`, node.token)
    const callerSide = await opening
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
    const received: Buffer[] = []
    agentSide.on('data', (chunk: Buffer) => {
      received.push(chunk)
      if (Buffer.concat(received).length === bytes.length) agentSide.end('bye')
    })
    callerSide.write(bytes)
    assert.equal(await readAll(callerSide as AsyncIterable<Buffer>), 'bye')
    assert.ok(Buffer.concat(received).equals(bytes))
  })

  it('charts of a VM and of a node come from the agent, and an agent that sends none is reported as outdated', async () => {
    const charts = { stepSeconds: 10, series: [{ name: 'cpu', unit: '%', start: 1_763_200_800, values: [1.5, null] }] }
    const answered = async (path: string, text: string) => {
      const asking = service.call('GET', path)
      const { tunnel, ...asked } = await dialled()
      const agentSide = await connect(`/api/v1/agent/tunnels/${tunnel}`, node.token)
      agentSide.end(text)
      agentSide.resume()
      return { asked, answer: await asking }
    }
    const ofVm = await answered(`${vms}/demo/charts?minutes=90`, JSON.stringify(charts))
    assert.deepEqual([ofVm.answer.status, ofVm.answer.body], [200, charts])
    assert.partialDeepStrictEqual(ofVm.asked, { to: 'charts', minutes: 90 })
    const nodes = '/api/v1/namespaces/svc-default/nodes'
    const ofNode = await answered(`${nodes}/${node.name}/charts`, JSON.stringify(charts))
    assert.deepEqual([ofNode.answer.status, ofNode.answer.body], [200, charts])
    assert.partialDeepStrictEqual(ofNode.asked, { to: 'charts', uid: '', minutes: 60 })
    for (const text of [
      '',
      'no',
      '{"stepSeconds":10,"series":[{"name":1}]}',
      '{"stepSeconds":10,"series":[{"values":["x"]}]}',
    ])
      assert.equal((await answered(`${vms}/demo/charts`, text)).answer.status, 409, text)
    assert.equal((await service.call('GET', `${vms}/none/charts`)).status, 404)
    assert.equal((await service.call('GET', `${nodes}/none/charts`)).status, 404)
  })

  it('a tunnel can be used once, by the node that was asked', async () => {
    const other = await startNode(service, { name: 'other' })
    const opening = connect(`${vms}/demo/connect`)
    const { tunnel } = await dialled()
    await assert.rejects(connect(`/api/v1/agent/tunnels/${tunnel}`, other.token), isRefusal(404))
    const agentSide = await connect(`/api/v1/agent/tunnels/${tunnel}`, node.token)
    await assert.rejects(connect(`/api/v1/agent/tunnels/${tunnel}`, node.token), isRefusal(404))
    agentSide.destroy()
    await readAll((await opening) as AsyncIterable<Buffer>)
  })

  it('a tunnel is refused like every request, before the connection changes', async () => {
    await assert.rejects(connect(`${vms}/demo/connect`, 'nonsense'), isRefusal(401))
    await assert.rejects(connect(`${vms}/nothing/connect`), isRefusal(404))
    await assert.rejects(connect(`${vms}/demo/connect?port=25`), isRefusal(422))
    await assert.rejects(connect('/api/v1/agent/tunnels/x'), isRefusal(403))
    await assert.rejects(connect(vms), isRefusal(400))
    const plain = await service.call('GET', `${vms}/demo/connect`)
    assert.equal(plain.status, 400)
    node.disconnect()
    await assert.rejects(connect(`${vms}/demo/connect`), isRefusal(503))
  })

  it('a tunnel is not opened for an invalid handshake, and is closed when the caller has left', async () => {
    const { request } = await import('node:http')
    const headers = { connection: 'Upgrade', upgrade: 'websocket', authorization: `Bearer ${service.adminToken}` }
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asking = request(`${url}${vms}/demo/connect`, { headers })
      asking
        .on('response', (answer) => resolve(answer.statusCode))
        .on('error', reject)
        .end()
    })
    assert.equal(status, 400)
    assert.equal(node.told.filter(({ type }) => type === 'DIAL').length, 0)

    const leaving = new AbortController()
    const opening = dialTunnel({
      baseUrl: url,
      path: `${vms}/demo/connect`,
      token: service.adminToken,
      signal: leaving.signal,
    }).catch(() => undefined)
    const { tunnel } = await dialled()
    leaving.abort()
    await opening
    await new Promise((resolve) => setTimeout(resolve, 50))
    const agentSide = await connect(`/api/v1/agent/tunnels/${tunnel}`, node.token)
    assert.equal(await readAll(agentSide as AsyncIterable<Buffer>), '')
  })

  it('a tunnel whose agent connects after the timeout is closed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let asked = ''
    const tell = async (_node: string, message: object): Promise<boolean> => {
      asked = (message as { tunnel: string }).tunnel
      return true
    }
    const tunnels = new Tunnels({ prefix: '', tell })
    const dialling = tunnels.dial(placedVm(1, { name: 'node-1' }, 1), 'ssh')
    const accept = tunnels.answer('node-1', asked)
    // The upgrade takes longer than the remaining time.
    t.mock.timers.tick(60_000)
    await assert.rejects(dialling, /not responding/)
    const socket = new PassThrough()
    accept.take(socket)
    assert.ok(socket.destroyed)
  })

  it('a tunnel ends with the token that opened it', async () => {
    await service.call('POST', '/api/v1/namespaces/svc-default/serviceaccounts/robot')
    const made = await service.call('POST', '/api/v1/namespaces/svc-default/serviceaccounts/robot/token')
    const opening = connect(`${vms}/demo/connect`, made.body.token)
    const { tunnel } = await dialled()
    await connect(`/api/v1/agent/tunnels/${tunnel}`, node.token)
    const callerSide = await opening
    await service.call('DELETE', '/api/v1/namespaces/svc-default/serviceaccounts/robot')
    await readAll(callerSide as AsyncIterable<Buffer>).catch(() => '')
  })

  it('an upgrade to another protocol is treated as a plain request', async () => {
    const response = await fetch(`${url}${vms}`, {
      headers: { authorization: `Bearer ${service.adminToken}` },
    })
    assert.equal(response.status, 200)
    const { request } = await import('node:http')
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'x' }
      const authorization = `Bearer ${service.adminToken}`
      request(`${url}${vms}`, { headers: { ...headers, authorization } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .on('error', reject)
        .end()
    })
    assert.equal(status, 200)
  })
})

describe('logs', () => {
  it('logs are read from the node, and end with its connection', async () => {
    const reading = fetch(`${url}${vms}/demo/logs?follow=true&tail=5`, {
      headers: { authorization: `Bearer ${service.adminToken}` },
      signal,
    })
    const { tunnel, to, follow, tail } = await dialled()
    assert.deepEqual([to, follow, tail], ['log', true, 5])
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/agent/tunnels/${tunnel}`, {
      headers: { authorization: `Bearer ${node.token}` },
    })
    createWebSocketStream(socket).end('login: ')
    const response = await reading
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain/)
    assert.equal(await response.text(), 'login: ')
  })
})

const isRefusal = (code: number) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error))
  assert.equal(error.code, code, error.message)
  return true
}
