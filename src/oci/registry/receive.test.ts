// Blobs straight into memory, from servers that say every byte themselves: what is taken, what is left to the ordinary way,
// and that memory is left alone afterwards.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import tls from 'node:tls'
import { makePair } from '../../../test/support/tools/certificates.ts'
import { createConnector } from './connect.ts'
import type { Received } from './lane.ts'
import { createReceiver } from './receive.ts'

const blob = randomBytes(300_000)
const head = (...lines: string[]) => `${['HTTP/1.1 200 OK', ...lines].join('\r\n')}\r\n\r\n`
const sized = head(`content-length: ${blob.length}`)
const policy = { allowLoopback: true, allowPrivate: false }

interface Told {
  readonly socket: Socket
  /** From 1 on: which request of all. */
  readonly number: number
  readonly text: string
}

/** `answer` is called for every request. */
async function serve(answer: (told: Told) => void, secure?: tls.TlsOptions) {
  const sockets = new Set<Socket>()
  let requests = 0
  const talk = (socket: Socket): void => {
    sockets.add(socket)
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      text += data
      if (!text.endsWith('\r\n\r\n')) return
      requests += 1
      answer({ socket, number: requests, text })
      text = ''
    })
  }
  const server = secure ? tls.createServer(secure, talk) : net.createServer(talk)
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: new URL(`${secure ? 'https' : 'http'}://127.0.0.1:${port}/v2/a/blobs/b?c=d`),
    connections: () => sockets.size,
    requests: () => requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function client({ ca = undefined as string | undefined, silenceMs = 60_000, allowLoopback = true } = {}) {
  const connector = createConnector({ policy: { ...policy, allowLoopback }, ca })
  const receiver = createReceiver(connector, silenceMs)
  return {
    ...receiver,
    [Symbol.dispose]() {
      receiver.close()
      connector.close()
    },
  }
}

const whole: Received = { bytes: blob.length, isElsewhere: false }
const nothing: Received = { bytes: 0, isElsewhere: false }

describe('receiving a blob', () => {
  it('puts it where it is wanted, one after the other on one connection', async () => {
    const texts: string[] = []
    await using server = await serve(({ socket, text }) => {
      texts.push(text)
      socket.write(sized)
      socket.write(blob)
    })
    using receiver = client()
    for (let round = 0; round < 3; round += 1) {
      const into = Buffer.from(new SharedArrayBuffer(blob.length))
      assert.deepEqual(await receiver.receive({ url: server.url, authorization: 'Bearer abc' }, into), whole)
      assert.ok(into.equals(blob))
    }
    assert.equal(server.connections(), 1)
    assert.equal(texts[0], texts[2])
    assert.match(texts[0] ?? '', /^GET \/v2\/a\/blobs\/b\?c=d HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/)
    assert.match(texts[0] ?? '', /\r\nAuthorization: Bearer abc\r\n\r\n$/)
  })

  it('takes several at once, each on a connection of its own', async () => {
    await using server = await serve(({ socket, text }) => {
      const fill = Number(/Authorization: (\d+)/.exec(text)?.[1])
      socket.end(
        Buffer.concat([Buffer.from(head('content-length: 70000', 'connection: close')), Buffer.alloc(70_000, fill)]),
      )
    })
    using receiver = client()
    const all = Array.from({ length: 8 }, (_, index) => ({ index, into: Buffer.alloc(70_000) }))
    await Promise.all(
      all.map(({ index, into }) => receiver.receive({ url: server.url, authorization: `${index + 1}` }, into)),
    )
    for (const { index, into } of all) assert.ok(into.equals(Buffer.alloc(70_000, index + 1)), `${index}`)
    assert.equal(server.connections(), 8)
  })

  it('understands a head that comes byte by byte', async () => {
    await using server = await serve(async ({ socket }) => {
      socket.setNoDelay(true)
      for (const byte of sized) {
        socket.write(byte)
        await new Promise((resolve) => setImmediate(resolve))
      }
      socket.write(blob)
    })
    using receiver = client()
    const into = Buffer.alloc(blob.length)
    assert.deepEqual(await receiver.receive({ url: server.url }, into), whole)
    assert.ok(into.equals(blob))
  })

  it('does not use a connection again that ends with its answer', async () => {
    await using server = await serve(({ socket }) => {
      socket.write(head(`Content-Length: ${blob.length}`, 'Connection: Close'))
      socket.write(blob)
    })
    using receiver = client()
    const into = Buffer.alloc(blob.length)
    for (let round = 0; round < 2; round += 1)
      assert.deepEqual(await receiver.receive({ url: server.url }, into), whole)
    assert.equal(server.connections(), 2)
  })

  it('goes by TLS where the certificate is trusted, and says nothing where it is not', async () => {
    const authority = await makePair({ name: 'an authority', isAuthority: true })
    const pair = await makePair({ issuer: authority })
    await using server = await serve(({ socket }) => {
      socket.write(sized)
      socket.write(blob)
    }, pair)
    const into = Buffer.alloc(blob.length)
    using stranger = client()
    assert.deepEqual(await stranger.receive({ url: server.url, authorization: 'Basic secret' }, into), nothing)
    assert.equal(server.requests(), 0)
    using receiver = client({ ca: authority.cert })
    assert.deepEqual(await receiver.receive({ url: server.url }, into), whole)
    assert.ok(into.equals(blob))
  })
})

describe('what is left to the ordinary way', () => {
  const elsewhere: Received = { bytes: 0, isElsewhere: true }
  const answers: readonly (readonly [name: string, answer: string | Buffer, expected: Received])[] = [
    ['a redirect', 'HTTP/1.1 307 Temporary Redirect\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n', elsewhere],
    ['chunks', `${head('transfer-encoding: chunked')}3\r\nabc\r\n`, elsewhere],
    ['a coding', head('content-encoding: gzip', `content-length: ${blob.length}`), elsewhere],
    ['no length', head('server: x'), elsewhere],
    ['two lengths', head(`content-length: ${blob.length}`, 'content-length: 1'), elsewhere],
    ['another length', head('content-length: 5'), nothing],
    ['401', 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n', nothing],
    ['503', 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n', nothing],
    ['an older HTTP', `HTTP/1.0 200 OK\r\ncontent-length: ${blob.length}\r\n\r\n`, nothing],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', nothing],
    ['an endless head', Buffer.alloc(20_000, 'x'), nothing],
    ['more than was said', Buffer.concat([Buffer.from(sized), blob, Buffer.from('more')]), whole],
  ]
  for (const [name, answer, expected] of answers)
    it(name, async () => {
      await using server = await serve(({ socket }) => socket.write(answer))
      using receiver = client()
      const into = Buffer.alloc(blob.length)
      assert.deepEqual(await receiver.receive({ url: server.url }, into), expected)
      assert.ok(into.equals(expected.bytes > 0 ? blob : Buffer.alloc(blob.length)))
    })

  it('a connection that breaks: what came of it is there', async () => {
    await using server = await serve(({ socket }) => {
      socket.write(sized)
      socket.end(blob.subarray(0, 100_000))
    })
    using receiver = client()
    const into = Buffer.alloc(blob.length)
    assert.deepEqual(await receiver.receive({ url: server.url }, into), { bytes: 100_000, isElsewhere: false })
    assert.ok(into.subarray(0, 100_000).equals(blob.subarray(0, 100_000)))
  })

  it('silence', async () => {
    await using server = await serve(({ socket }) => socket.write(sized))
    using receiver = client({ silenceMs: 50 })
    assert.deepEqual(await receiver.receive({ url: server.url }, Buffer.alloc(blob.length)), nothing)
  })

  it('a place where nobody is, and one that must not be connected to', async () => {
    await using server = await serve(({ socket }) => socket.write(sized))
    using guarded = client({ allowLoopback: false })
    assert.deepEqual(await guarded.receive({ url: server.url }, Buffer.alloc(blob.length)), nothing)
    assert.equal(server.connections(), 0)
    const { url } = server
    await server[Symbol.asyncDispose]().catch(() => undefined)
    using receiver = client()
    assert.deepEqual(await receiver.receive({ url }, Buffer.alloc(blob.length)), nothing)
  })

  it('an end by who asked, after which memory is left alone', async () => {
    const stopping = new AbortController()
    const { promise: isBegun, resolve: begun } = Promise.withResolvers<Socket>()
    await using server = await serve(({ socket }) => {
      socket.write(sized)
      socket.write(blob.subarray(0, 1_000), () => begun(socket))
    })
    using receiver = client()
    const into = Buffer.alloc(blob.length)
    const receiving = receiver.receive({ url: server.url, signal: stopping.signal }, into)
    const socket = await isBegun
    const isClosed = new Promise((resolve) => socket.on('close', resolve))
    stopping.abort(new Error('enough'))
    await assert.rejects(receiving, /enough/)
    into.fill(7)
    socket.write(blob)
    await isClosed
    assert.ok(into.equals(Buffer.alloc(blob.length, 7)))
  })
})
