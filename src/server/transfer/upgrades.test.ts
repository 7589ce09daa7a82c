// WebSockets whose peer reads nothing, or sends tiny pieces.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

let service: TestService
let client: net.Socket
/** The service's side of the connection. */
let connection: net.Socket

/** Opens the connection for watches by hand, so that a test can send any frames. */
beforeEach(async () => {
  service = await startService()
  const { port } = new URL(await service.listen())
  const accepted = once(service.app.server, 'connection')
  client = net.connect(Number(port), '127.0.0.1').on('error', () => undefined)
  const fields = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Host: svc3']
  const key = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`
  const authorization = `Authorization: Bearer ${service.devToken}`
  client.write(['GET /api/v1/watch HTTP/1.1', ...fields, key, authorization, '', ''].join('\r\n'))
  ;[connection] = (await accepted) as [net.Socket]
  const [answer] = (await once(client, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 101 /)
})
afterEach(async () => {
  client.destroy()
  await service[Symbol.asyncDispose]()
})

const ping = 0x89
const text = 0x81
/** A frame with an empty mask. */
const frame = (head: number, body: string): Buffer =>
  Buffer.concat([Buffer.from([head, 0x80 | body.length, 0, 0, 0, 0]), Buffer.from(body)])
const many = (piece: Buffer, count: number): Buffer => Buffer.alloc(piece.length * count, piece)

/** The longest that this process computed without serving anything else, in milliseconds on the CPU. */
async function longestTurn(work: Promise<unknown>): Promise<number> {
  let isOver = false
  void work.finally(() => {
    isOver = true
  })
  let longest = 0
  while (!isOver) {
    const start = process.threadCpuUsage()
    await new Promise(setImmediate)
    const { user, system } = process.threadCpuUsage(start)
    longest = Math.max(longest, (user + system) / 1_000)
  }
  return longest
}

describe('a WebSocket', () => {
  it('a WebSocket whose answers to pings are not read buffers one of them', async () => {
    // Keeps what the service writes, as if the client had stopped to read long ago.
    connection.cork()
    const before = connection.bytesRead
    const pings = many(frame(ping, 'x'.repeat(125)), 5_000)
    client.write(pings)
    await eventually(() => assert.equal(connection.bytesRead - before, pings.length))
    // The service takes one in each turn.
    for (let turns = 0; turns < 6_000; turns++) await new Promise(setImmediate)
    const most = connection.writableLength
    assert.ok(most < 1_024, `${most} bytes are buffered`)
  })

  it('a WebSocket answers the latest ping of a peer that reads', async () => {
    const socket = new WebSocket(`${(service.apiUrl).replace('http', 'ws')}/api/v1/watch`, {
      headers: { authorization: `Bearer ${service.devToken}` },
    })
    await once(socket, 'open')
    for (const data of ['first', 'second']) {
      socket.ping(data)
      const [answer] = await once(socket, 'pong')
      assert.equal(String(answer), data)
    }
    const answers: string[] = []
    socket.on('pong', (data) => answers.push(String(data)))
    for (let count = 0; count < 1_000; count++) socket.ping(String(count))
    await eventually(() => assert.equal(answers.at(-1), '999'))
    socket.terminate()
  })

  it('a WebSocket with many tiny messages does not keep others waiting', async () => {
    client.resume()
    // Messages that ask for nothing.
    client.write(many(frame(text, '{"unwatch":1}'), 100_000))
    const sent = eventually(() => assert.equal(client.writableLength, 0))
    const longest = await longestTurn(sent.then(() => sleep(200)))
    assert.ok(longest < 100, `${longest} ms`)
  })

  it('a WebSocket with too many fragments ends', async () => {
    const ended = once(client, 'close')
    client.resume()
    client.write(Buffer.concat([frame(0x01, 'x'), many(frame(0x00, 'x'), 2_000)]))
    await ended
  })
})
