// One port for HTTP and HTTPS: choosing the protocol, refusing connections, and closing.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import os from 'node:os'
import { afterEach, before, describe, it } from 'node:test'
import tls from 'node:tls'
import type { FastifyServerOptions } from 'fastify'
import { startService } from '../../../test/support/rigs/service.ts'
import { makePair, type TestPair } from '../../../test/support/tools/certificates.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { silentLog } from '../../platform/log.ts'
import { factsOf } from '../tls/certificate-check.ts'
import type { Served } from '../tls/certificates.ts'
import { listenerFactory } from './listener.ts'

const servedOf = ({ cert, key }: TestPair): Served => ({ certificate: cert, key, facts: factsOf(cert) })
let first: Served
let second: Served
before(async () => {
  first = servedOf(await makePair({ name: 'first.example' }))
  second = servedOf(await makePair({ name: 'second.example' }))
})

interface Listening {
  readonly server: http.Server
  readonly port: number
  /** The number of requests for a certificate. */
  readonly asked: () => number
  swap(served: Served): void
}
const open: http.Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function listen(
  handler: http.RequestListener,
  options: {
    plainHttp?: boolean
    openingMs?: number
    limits?: object
    current?: () => Promise<Served>
    port?: number
    most?: number
  } = {},
): Promise<Listening> {
  let asked = 0
  let listener: (served: Served) => void = () => assert.fail('nobody listens for certificates')
  const certificates = {
    current: async () => {
      asked++
      return options.current ? options.current() : first
    },
    subscribe: (heard: typeof listener) => {
      listener = heard
      return () => undefined
    },
  }
  const { plainHttp = true, openingMs = 10_000, limits = {} } = options
  const make = listenerFactory({ plainHttp, certificates, log: silentLog, openingMs })
  const server = make(handler as Parameters<typeof make>[0], limits as FastifyServerOptions) as http.Server
  if (options.most !== undefined) server.maxConnections = options.most
  server.listen({ port: options.port ?? 0, host: '127.0.0.1' })
  await once(server, 'listening')
  open.push(server)
  return {
    server,
    port: (server.address() as AddressInfo).port,
    asked: () => asked,
    swap: (served) => listener(served),
  }
}

const hello: http.RequestListener = (request, response) => {
  const { remoteAddress, encrypted } = request.socket as tls.TLSSocket
  response.end(`${encrypted ? 'https' : 'http'} ${remoteAddress} ${request.method}`)
}

function get(
  url: string,
  agent?: https.Agent,
): Promise<{ status: number; text: string; headers: http.IncomingHttpHeaders }> {
  const options = { rejectUnauthorized: false, ...(agent && { agent }) }
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:') ? https.get(url, options) : http.get(url)
    request.on('error', reject).on('response', async (response) => {
      const chunks = await response.toArray()
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), headers: response.headers })
    })
  })
}

/** Sends these bytes and reads until the other side closes. */
async function raw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = net.connect(port, '127.0.0.1', () => bytes.length > 0 && socket.write(bytes))
  socket.on('error', () => undefined)
  let reply = ''
  socket.on('data', (chunk) => {
    reply += chunk.toString('latin1')
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return reply
}

describe('one port', () => {
  it('one port serves both protocols with the address of the client, and loads the certificate with the first TLS connection', async () => {
    const { port, asked } = await listen(hello)
    assert.equal((await get(`http://127.0.0.1:${port}`)).text, 'http 127.0.0.1 GET')
    assert.equal(asked(), 0)
    const answers = await Promise.all(Array.from({ length: 10 }, () => get(`https://127.0.0.1:${port}`)))
    for (const { text } of answers) assert.equal(text, 'https 127.0.0.1 GET')
    const before = asked()
    await get(`https://127.0.0.1:${port}`)
    assert.equal(asked(), before)
  })

  it('one port chooses the protocol by a first byte that arrives alone', async () => {
    const { port } = await listen(hello)
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('G')
    await new Promise((resolve) => setTimeout(resolve, 30))
    socket.write('ET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    const chunks = await socket.toArray()
    assert.match(Buffer.concat(chunks).toString(), /http 127\.0\.0\.1 GET$/)
  })

  it('one port keeps connections of both kinds open between requests', async () => {
    const sockets = new Set<unknown>()
    const { port } = await listen((request, response) => {
      sockets.add(request.socket)
      response.end()
    })
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1 })
    for (let index = 0; index < 5; index++) await get(`https://127.0.0.1:${port}`, agent)
    assert.equal(sockets.size, 1)
    agent.destroy()
  })

  it('one port gives new connections a new certificate and leaves the open ones alone', async () => {
    const { port, swap } = await listen(hello)
    const old = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(old, 'secureConnect')
    swap(second)
    const fresh = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(fresh, 'secureConnect')
    assert.equal(fresh.getPeerX509Certificate()?.fingerprint256, second.facts.fingerprint)
    old.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.match(Buffer.concat(await old.toArray()).toString(), /https 127\.0\.0\.1 GET$/)
    fresh.destroy()
  })

  it('one port serves the latest certificate also when it came while the first was being made', async () => {
    const made = Promise.withResolvers<Served>()
    const { port, swap, asked } = await listen(hello, { current: () => made.promise })
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await eventually(() => assert.equal(asked(), 1))
    swap(second)
    made.resolve(first)
    await once(socket, 'secureConnect')
    assert.equal(socket.getPeerX509Certificate()?.fingerprint256, second.facts.fingerprint)
    socket.destroy()
  })

  it('one port closes TLS connections without a certificate, and serves others', async () => {
    const { port } = await listen(hello, { current: () => Promise.reject(new Error('sealed')) })
    await assert.rejects(get(`https://127.0.0.1:${port}`), /ECONNRESET|socket/)
    assert.equal((await get(`http://127.0.0.1:${port}`)).status, 200)
  })
})

describe('localhost', () => {
  it('localhost stands for both of its addresses, as with servers of Fastify', async () => {
    await using service = await startService()
    const { port } = new URL(await service.app.listen({ host: 'localhost', port: 0 }))
    const addresses = (os.networkInterfaces().lo ?? []).map(({ address }) => address)
    assert.ok(addresses.length > 0)
    for (const address of addresses) {
      const host = address.includes(':') ? `[${address}]` : address
      assert.equal((await get(`http://${host}:${port}/healthz`)).status, 200)
      assert.equal((await get(`https://${host}:${port}/healthz`)).status, 200)
    }
  })
})

describe('without plain HTTP', () => {
  it('without plain HTTP, every plain request is refused with the advice to use https://', async () => {
    const { port } = await listen(() => assert.fail('reached the handler'), { plainHttp: false })
    const { status, text, headers } = await get(`http://127.0.0.1:${port}/api/v1/cluster-info`)
    assert.equal(status, 400)
    assert.match(String(headers['content-type']), /^application\/json/)
    assert.equal(headers.connection, 'close')
    const refusal = JSON.parse(text)
    assert.deepEqual([refusal.kind, refusal.code, refusal.reason], ['Status', 400, 'BadRequest'])
    assert.match(refusal.hint, /^Use https:\/\//)
    const post = await raw(port, `POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`)
    assert.match(post, /^HTTP\/1\.1 400 .*https:/s)
  })
})

describe('silent and broken connections', () => {
  it('silent connections, half handshakes and invalid bytes are closed, while others are served', async () => {
    const nonsense = Buffer.from([0x16, 0x03, 0x01, 0x00, 0x20, ...Array(32).fill(0x41)])
    const sayTo = (port: number) => ['', Buffer.from([0x16]), nonsense, nonsense.subarray(0, 9)].map((each) => raw(port, each)) // biome-ignore format: one thought
    const hurried = await listen(hello, { openingMs: 150 })
    for (const reply of await Promise.all(sayTo(hurried.port))) assert.ok(!reply.includes('HTTP'))
    // With a longer timeout, because a handshake may take longer than that on a busy machine.
    const { port, server } = await listen(hello, { openingMs: 600_000 })
    const closings = sayTo(port)
    assert.equal((await get(`https://127.0.0.1:${port}`)).status, 200)
    assert.equal((await get(`http://127.0.0.1:${port}`)).status, 200)
    server.close()
    server.closeAllConnections()
    await Promise.all(closings)
  })

  it('a client that sends the rest of its request slowly is served', async () => {
    const { port } = await listen(hello, { openingMs: 500 })
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n'))
    await new Promise((resolve) => setTimeout(resolve, 600))
    socket.write('Host: x\r\nConnection: close\r\n\r\n')
    assert.match(Buffer.concat(await socket.toArray()).toString(), /http 127\.0\.0\.1 GET$/)
  })

  it('endless headers time out, by TLS as well', async () => {
    const limits = { http: { headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 50 } }
    const { port, server } = await listen(hello, { limits })
    const late: string[] = []
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      late.push(error.code ?? '')
      socket.destroy()
    })
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    // The server may have closed the connection before this arrives.
    socket.on('error', () => undefined).write('GET / HTTP/1.1\r\n')
    await new Promise((resolve) => socket.on('close', resolve))
    assert.deepEqual(late, ['ERR_HTTP_REQUEST_TIMEOUT'])
  })

  it('headers over the limit are refused, by TLS as well', async () => {
    const { port, server } = await listen(hello, { limits: { http: { maxHeaderSize: 2_000 } } })
    server.on('clientError', ({ code }: NodeJS.ErrnoException, refused) => refused.end(`refused: ${code}`))
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(4_000)}\r\n\r\n`)
    assert.match(Buffer.concat(await socket.toArray()).toString(), /^refused: HPE_HEADER_OVERFLOW$/)
  })
})

describe('limits of connections', () => {
  it('a port that is taken is refused', async () => {
    const { port } = await listen(hello)
    await assert.rejects(listen(hello, { port }), { code: 'EADDRINUSE' })
    assert.equal((await get(`http://127.0.0.1:${port}`)).status, 200)
  })

  it('a server accepts no more connections than its limit', async () => {
    const { server, port } = await listen(hello, { most: 32 })
    let accepted = 0
    server.on('connection', () => accepted++)
    const sockets = Array.from({ length: 200 }, () => net.connect(port, '127.0.0.1').on('error', () => undefined))
    await eventually(() => sockets.filter(({ closed }) => closed).length >= 200 - 32)
    for (const socket of sockets) socket.destroy()
    assert.ok(accepted <= 32, `${accepted}`)
  })
})

describe('closing', () => {
  it('closing waits for requests of both protocols and for nothing else', async () => {
    const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const answer = Promise.withResolvers<void>()
    let count = 0
    const { server, port } = await listen(async (request, response) => {
      if (request.url !== '/slow') return void response.end()
      asked[count++]?.resolve()
      await answer.promise
      response.end('whole')
    })
    const agent = new https.Agent({ keepAlive: true })
    await get(`https://127.0.0.1:${port}`, agent)
    const slow = [get(`http://127.0.0.1:${port}/slow`), get(`https://127.0.0.1:${port}/slow`)]
    const idle = [raw(port, ''), raw(port, Buffer.from([0x16, 0x03]))]
    await Promise.all(asked.map(({ promise }) => promise))
    const closed = new Promise((resolve) => server.close(resolve))
    await Promise.all(idle)
    answer.resolve()
    for (const { text } of await Promise.all(slow)) assert.equal(text, 'whole')
    server.closeIdleConnections()
    await closed
    agent.destroy()
  })

  it('closing by force ends streams of both protocols', async () => {
    const { server, port } = await listen((_request, response) => void response.write('begun'))
    const begin = (url: string): Promise<http.IncomingMessage> =>
      new Promise((resolve) =>
        (url.startsWith('https:') ? https.get(url, { rejectUnauthorized: false }) : http.get(url)).on(
          'response',
          resolve,
        ),
      )
    const streams = await Promise.all([begin(`http://127.0.0.1:${port}`), begin(`https://127.0.0.1:${port}`)])
    const ends = streams.map((stream) => stream.toArray().catch(() => 'cut off'))
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    assert.deepEqual(await Promise.all(ends), ['cut off', 'cut off'])
    await closed
  })
})
