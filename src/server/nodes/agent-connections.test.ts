// Connections of agents, over real WebSockets: the stream, calls, and what ends a connection.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import WebSocket from 'ws'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { AgentAnswer } from '../../api/nodes/agent-connection.ts'
import { openAgentConnection } from './agent-connections.ts'
import { Fleet, heartbeatSeconds } from './fleet.ts'

const vms = '/api/v1/namespaces/svc-default/vms'
const path = '/api/v1/agent/connection'

let service: TestService
let scheduler: AsyncDisposable
let token: string
let url: string
const open = new Set<WebSocket>()

beforeEach(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  ;({ token } = await startNode(service))
  url = (await service.listen()).replace('http', 'ws')
})
afterEach(async () => {
  for (const socket of open) socket.terminate()
  open.clear()
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

/** Opens a connection and collects its lines. */
async function connect() {
  const socket = new WebSocket(url + path, { headers: { authorization: `Bearer ${token}` } })
  open.add(socket)
  const lines: (AgentMessage | AgentAnswer)[] = []
  const waiting = new Set<() => void>()
  const closed = once(socket, 'close')
  socket.on('error', () => undefined)
  socket.on('message', (text) => {
    for (const line of String(text).split('\n')) if (line !== '') lines.push(JSON.parse(line))
    for (const wake of waiting) wake()
  })
  const until = async <T>(find: () => T | undefined): Promise<T> => {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          waiting.delete(wake)
          resolve()
        }
        waiting.add(wake)
      })
    }
  }
  const message = <T extends AgentMessage['type']>(type: T) =>
    until(() => lines.find((line): line is Extract<AgentMessage, { type: T }> => line.type === type))
  const answer = (id: number): Promise<AgentAnswer & { body?: never }> =>
    until(() => lines.find((line): line is AgentAnswer & { body?: never } => line.type === 'ANSWER' && line.id === id))
  await once(socket, 'open')
  return { socket, lines, closed, message, answer }
}

const line = (id: number, operation: string, body?: unknown): string => JSON.stringify({ id, operation, body })

describe('an agent connection', () => {
  it('an agent connection begins with HELLO, and carries desired VMs and their reports', async () => {
    const { socket, lines, message, answer } = await connect()
    const { vms: desired, kept, store, heartbeatSeconds: seconds } = await message('HELLO')
    assert.equal(lines[0]?.type, 'HELLO')
    assert.deepEqual([desired, kept, seconds], [[], [], heartbeatSeconds])
    assert.ok(store.uid && store.revision)
    const deploying = service.call('POST', vms, { body: { image: 'intel', name: 'demo' } })
    const { uid, namespace, name, generation } = (await message('VM')).vm
    const report = { uid, namespace, name, generation, power: 'running' }
    socket.send(`${line(1, 'reportVms', { vms: [report, { ...report, uid: 'stranger' }] })}\n${line(2, 'noteAgent')}\n`)
    assert.deepEqual((await answer(1)).body, { unknown: ['stranger'] })
    assert.deepEqual((await answer(2)).body, { wantsReport: false })
    const { status, body } = await deploying
    assert.deepEqual([status, body.status], [201, 'Running'])
    const { text } = await service.call('GET', '/metrics')
    for (const route of ['vms', 'note'])
      assert.match(text, new RegExp(`svc3_http_request_duration_seconds_count\\{[^}]*agent/${route}"[^}]*200"\\} 1`))
  })

  it('an agent that gave up while it waited for admission keeps its other connection', async () => {
    const { socket, message, answer } = await connect()
    await message('HELLO')
    const { admission } = service.services
    const { promise: turnComes, resolve } = Promise.withResolvers<void>()
    const places = Array.from({ length: 16 }, (_, n) => admission.admit(`other-${n}`, () => turnComes))
    const late = new WebSocket(url + path, { headers: { authorization: `Bearer ${token}` }, handshakeTimeout: 100 })
    open.add(late)
    await once(late, 'error')
    // By the answer, the server has read everything before.
    socket.send(line(0, 'noteAgent'))
    await answer(0)
    resolve()
    await Promise.all(places)
    // The late connection was admitted before this.
    await admission.admit('last', () => turn())
    socket.send(line(1, 'noteAgent'))
    assert.equal((await answer(1)).status, 200)
  })

  for (const [how, leave] of [
    ['disconnects before its token is checked', (late: net.Socket) => late.end()],
    ['is cut off', (late: net.Socket, waits: Promise<void>) => waits.then(() => late.resetAndDestroy())],
  ] as const)
    it(`an agent that ${how} while it waited for admission keeps its other connection`, async (t) => {
      const { socket, message, answer } = await connect()
      await message('HELLO')
      const { admission, tokens } = service.services
      const turnComes = Promise.withResolvers<void>()
      const places = Array.from({ length: 16 }, (_, n) => admission.admit(`other-${n}`, () => turnComes.promise))
      const waits = Promise.withResolvers<void>()
      const admit = admission.admit.bind(admission)
      t.mock.method(admission, 'admit', (...args: Parameters<typeof admit>) => {
        waits.resolve()
        return admit(...args)
      })
      const principal = await tokens.verify(token)
      assert.ok(principal)
      // No server has verified this token yet.
      const fresh = (await tokens.issue(principal)).token
      const late = net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
      const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Host: svc3']
      const key = `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`
      late.write([`GET ${path} HTTP/1.1`, ...fields, key, `Authorization: Bearer ${fresh}`, '', ''].join('\r\n'))
      await leave(late, waits.promise)
      await waits.promise
      // By the answer, the server has read everything before.
      socket.send(line(0, 'noteAgent'))
      await answer(0)
      turnComes.resolve()
      await Promise.all(places)
      // The late connection was admitted before this.
      await admission.admit('last', () => turn())
      socket.send(line(1, 'noteAgent'))
      assert.equal((await answer(1)).status, 200)
      late.destroy()
    })

  it('an agent connection stays open after refused calls', async () => {
    const { socket, message, answer } = await connect()
    await message('HELLO')
    const refused: readonly (readonly [operation: string, body: unknown, status: number, words: RegExp])[] = [
      ['nothing', undefined, 404, /Unknown operation/],
      ['deleteNode', undefined, 403, /not allowed/],
      ['joinCluster', {}, 400, /needs an HTTP request/],
      ['getBlob', undefined, 400, /needs an HTTP request/],
      ['reportVms', { vms: 7 }, 400, /vms must be a list/],
      ['reportVms', {}, 400, /vms is required/],
      ['reportNode', { ip: 7 }, 400, /ip must be a string/],
    ]
    socket.send(refused.map(([operation, body], id) => line(id, operation, body)).join('\n'))
    for (const [id, [operation, , status, words]] of refused.entries()) {
      const { status: said, body } = await answer(id)
      assert.equal(said, status, operation)
      assert.match(JSON.stringify(body), words)
    }
    socket.send(line(99, 'noteAgent'))
    assert.equal((await answer(99)).status, 200)
  })

  for (const [what, sent] of Object.entries({
    'is not JSON': '{"id":1,',
    'is not a call': '{"id":"1","operation":"noteAgent"}',
    'is null': 'null',
    'names a prototype': '{"id":1,"operation":"reportNode","body":{"__proto__":{"ip":"x"}}}',
    'nests too deep': `{"id":1,"operation":"noteAgent","body":${'['.repeat(100)}${']'.repeat(100)}}`,
    'is not text': Buffer.from(line(1, 'noteAgent')),
    'is too long': line(1, 'reportVms', { vms: ['x'.repeat(2 ** 20)] }),
  }))
    it(`an agent connection ends after a message that ${what}`, async () => {
      const { socket, closed, lines, message } = await connect()
      await message('HELLO')
      socket.send(sent)
      await closed
      assert.deepEqual(
        lines.map(({ type }) => type),
        ['HELLO'],
      )
      await eventually(async () => assert.ok(!service.services.fleet.isOpen('node-1')))
    })

  it('an agent connection ends with its node', async () => {
    const { closed, message } = await connect()
    await message('HELLO')
    await service.call('DELETE', '/api/v1/namespaces/svc-default/nodes/node-1')
    await closed
  })

  it('an agent connection ends with the token that opened it', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const { closed, message } = await connect()
    await message('HELLO')
    service.clock.nowMs += 2 * 3_600_000
    context.mock.timers.tick(30_000)
    const [code] = await closed
    assert.equal(code, 4401)
  })

  it('an agent connection ends when the server stops', async () => {
    const { closed, message } = await connect()
    await message('HELLO')
    await service[Symbol.asyncDispose]()
    await closed
  })

  it('an agent connection ends when the node opens another one, which is served', async () => {
    const one = await connect()
    await one.message('HELLO')
    const other = await connect()
    await one.closed
    other.socket.send(line(1, 'noteAgent'))
    assert.equal((await other.answer(1)).status, 200)
  })

  it('an agent connection is refused as a bad request if a proxy removed the Upgrade header', async () => {
    const { status, body } = await service.call('GET', path, { token })
    assert.deepEqual([status, body.message], [400, 'This operation requires a WebSocket'])
  })

  it('an agent connection is refused without the token of an agent', async () => {
    const answered = async (bearer: string): Promise<number | undefined> => {
      const socket = new WebSocket(url + path, { headers: { authorization: `Bearer ${bearer}` } })
      const [, { statusCode }] = await once(socket, 'unexpected-response')
      return statusCode
    }
    assert.deepEqual([await answered('none'), await answered(service.adminToken)], [401, 403])
  })
})

/** A connection whose other side reads nothing. */
function stalled(count: number) {
  const fleet = new Fleet()
  const sends: ((answer: string) => void)[] = []
  const socket = new Duplex({ objectMode: true, writableHighWaterMark: 1, read() {}, write: () => undefined })
  const accept = openAgentConnection({
    fleet,
    node: 'node-1',
    hello: () => ({ type: 'PING' }),
    take: (_line, send) => {
      sends.push(send)
      return new Promise(() => undefined)
    },
  })
  accept.take(socket)
  for (let id = 0; id < count; id++) socket.emit('data', line(id, 'noteAgent'))
  return { fleet, sends, socket }
}

it('the connection of an agent with too many calls in progress is paused', () => {
  const few = stalled(31)
  const many = stalled(32)
  assert.deepEqual([few.socket.isPaused(), many.socket.isPaused()], [false, true])
  for (const { fleet } of [few, many]) fleet.dropAll()
})

it('the connection of an agent that does not read answers is ended', async () => {
  const { fleet, sends, socket } = stalled(1)
  await turn()
  const [send = () => undefined] = sends
  for (let count = 0; count < 1_000; count++) send('answer\n')
  assert.ok(!socket.destroyed)
  send('answer\n')
  assert.ok(socket.destroyed && !fleet.isOpen('node-1'))
  fleet.dropAll()
})
