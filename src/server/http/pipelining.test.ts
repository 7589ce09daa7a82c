// Connections that send many requests at once, over HTTP and HTTPS.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import type { RequestListener } from 'node:http'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { promisify } from 'node:util'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { eventually as retry } from '../../../test/support/tools/eventually.ts'
import { PacedResponse } from './paced-response.ts'
import { limitPipelining } from './pipelining.ts'

const eventually = (check: () => void): Promise<void> => retry(check, 10_000)
const bundle = '/api/v1/swagger/files/swagger-ui-bundle.js'
const request = (path: string, id = 'x', more = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${more}\r\n`
const idsIn = (text: string): string[] => [...text.matchAll(/^x-request-id: (\S+)/gim)].map(([, id]) => id ?? '')

async function connect(port: number, protocol: string): Promise<net.Socket> {
  const at = { port, host: '127.0.0.1', rejectUnauthorized: false }
  const socket = protocol === 'https' ? tls.connect(at) : net.connect(at)
  socket.on('error', () => undefined)
  await once(socket, protocol === 'https' ? 'secureConnect' : 'connect')
  return socket
}

function reading(socket: net.Socket): () => string {
  let text = ''
  socket.on('data', (piece) => {
    text += piece.toString('latin1')
  })
  return () => text
}

for (const protocol of ['http', 'https']) {
  describe(`many requests in one write, over ${protocol}`, () => {
    let service: TestService
    let port: number
    beforeEach(async () => {
      service = await startService({ settings: { limits: { anonymousPerMinute: 1_000_000 } } })
      port = Number(new URL(await service.listen()).port)
    })
    afterEach(() => service[Symbol.asyncDispose]())

    it('are answered in order if there are 32 of them, whatever each takes', async () => {
      const socket = await connect(port, protocol)
      const told = reading(socket)
      const ids = Array.from({ length: 32 }, (_, index) => `n${index}`)
      const paths = ['/healthz', '/nowhere', '/api/v1/openapi.json', '/api/v1/swagger']
      socket.write(ids.map((id, index) => request(paths[index % 4] as string, id)).join(''))
      await eventually(() => assert.equal(told().match(/HTTP\/1\.1 /g)?.length, 32))
      // Pages have no request id.
      assert.deepEqual(
        idsIn(told()),
        ids.filter((_, index) => index % 4 !== 3),
      )
      socket.write(request('/healthz', 'again'))
      await eventually(() => assert.equal(idsIn(told()).at(-1), 'again'))
      socket.destroy()
    })

    it('cost little if the answers are not read, and others are served', async () => {
      // The files are read once, and the code is compiled.
      const warm = await connect(port, protocol)
      reading(warm)
      warm.write(request(bundle))
      await sleep(200)
      warm.destroy()
      const before = { descriptors: fs.readdirSync('/dev/fd').length, bytes: process.memoryUsage().rss }
      const sockets = await Promise.all(Array.from({ length: 10 }, () => connect(port, protocol)))
      for (const socket of sockets) {
        socket.pause()
        socket.write(request(bundle).repeat(32))
      }
      for (let pings = 0; pings < 10; pings++) {
        const { status } = await fetch(`http://127.0.0.1:${port}/healthz`)
        assert.equal(status, 200)
        // Both ends of each connection are in this process.
        assert.ok(fs.readdirSync('/dev/fd').length < before.descriptors + 30)
        await sleep(20)
      }
      // Without the limit, 320 answers of 1.4 MB.
      assert.ok(process.memoryUsage().rss - before.bytes < 80 * 1_048_576)
      for (const socket of sockets) socket.destroy()
    })

    it('end the connection if there are 1,000 of them', async () => {
      const socket = await connect(port, protocol)
      const told = reading(socket)
      socket.write(request(bundle).repeat(1_000))
      await eventually(() => assert.ok(socket.closed))
      assert.ok((told().match(/HTTP\/1\.1 /g)?.length ?? 0) <= 32)
    })

    it('may end in a body that arrives late', async () => {
      const socket = await connect(port, protocol)
      const told = reading(socket)
      const head = `POST /console/session HTTP/1.1\r\nHost: x\r\nX-Request-Id: last\r\nSvc3-Console: 1\r\nContent-Length: 20\r\n\r\n`
      socket.write(`${request('/healthz').repeat(20)}${head}{"ticket":`)
      await sleep(100)
      socket.write('"unknown"}')
      await eventually(() => assert.equal(idsIn(told()).at(-1), 'last'))
      socket.destroy()
    })

    it('are not overtaken by an upgrade', async () => {
      const socket = await connect(port, protocol)
      const told = reading(socket)
      const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
      socket.write(`${request('/healthz').repeat(10)}${request('/healthz', 'upgrade', upgrade)}`)
      await eventually(() => assert.equal(idsIn(told()).length, 11))
      assert.equal(idsIn(told()).at(-1), 'upgrade')
      socket.destroy()
    })
  })
}

describe('requests of one connection', () => {
  const running: http.ServerResponse[] = []
  let server: http.Server
  let socket: net.Socket
  let told: () => string
  beforeEach(async () => {
    const handler: RequestListener = (_request, response) => void running.push(response)
    server = http.createServer({ ServerResponse: PacedResponse }, limitPipelining(handler, 300)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    socket = await connect((server.address() as AddressInfo).port, 'http')
    told = reading(socket)
  })
  afterEach(() => {
    running.length = 0
    server.closeAllConnections()
    server.close()
  })

  it('run four at a time, and the next one when an answer is complete', async () => {
    socket.write(request('/').repeat(10))
    await eventually(() => assert.equal(running.length, 4))
    // An answer behind another one has not been sent yet.
    running[1]?.end('second')
    await sleep(50)
    assert.equal(running.length, 4)
    running[0]?.end('first')
    await eventually(() => assert.equal(running.length, 6))
    for (let answered = 2; answered < 10; answered++) {
      await eventually(() => assert.ok(running[answered]))
      running[answered]?.end()
    }
    await eventually(() => assert.equal(told().match(/HTTP\/1\.1 200/g)?.length, 10))
    assert.match(told(), /first.*second/s)
  })

  it('end if none is completed for long while others wait', async () => {
    socket.write(request('/').repeat(4))
    await eventually(() => assert.equal(running.length, 4))
    await sleep(400)
    assert.ok(!socket.closed, 'none waits')
    socket.write(request('/'))
    await eventually(() => assert.ok(socket.closed))
    assert.equal(running.length, 4, 'the waiting request does not run when its client is gone')
  })

  it('end if their client reads nothing, and not if it reads slowly', async () => {
    const connections = (): Promise<number> => promisify(server.getConnections.bind(server))()
    socket.write(request('/'))
    await eventually(() => assert.ok(running[0]))
    running[0]?.end(Buffer.alloc(128 * 2 ** 20))
    // The kernel tells the server only of larger steps.
    for (let read = 4 * 2 ** 20; read <= 64 * 2 ** 20; read += 4 * 2 ** 20) {
      while (socket.bytesRead < read) {
        socket.resume()
        await once(socket, 'data')
      }
      socket.pause()
      await sleep(50)
    }
    assert.equal(await connections(), 1)
    await retry(async () => assert.equal(await connections(), 0), 10_000)
  })
})
