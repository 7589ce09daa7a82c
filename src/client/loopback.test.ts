// The transport of the command line on its own machine, held against Node's http: the same answers, the same faults.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { AnswerReader, NotHttp } from './answer-reader.ts'
import { httpTransport } from './http.ts'
import { loopbackTransport } from './loopback.ts'
import { ConnectionError, type Transport, type TransportRequest } from './transport.ts'

const elsewhere: Transport = async () => assert.fail('this request belongs here')
const transports: Readonly<Record<string, Transport>> = {
  'node:http': httpTransport(),
  loopback: loopbackTransport(elsewhere),
}

const request = (url: string, more: Partial<TransportRequest> = {}): TransportRequest => ({
  method: 'GET',
  url,
  headers: { accept: 'application/json' },
  body: undefined,
  signal: new AbortController().signal,
  fresh: true,
  ...more,
})

async function listen(t: TestContext, server: net.Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Says `text` to whoever connects and asks, whatever it asks, and hangs up. */
const saying = (t: TestContext, text: string): Promise<string> =>
  listen(
    t,
    net.createServer((socket: Socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(text))
    }),
  )

const answers: Readonly<Record<string, RequestListener>> = {
  'with a length': (_, response) => response.end('{"a":"ä"}'),
  'in chunks': (_, response) => {
    response.write('{"a":')
    response.write(`"${'ä'.repeat(200_000)}"`)
    response.end('}')
  },
  'with trailers': (_, response) => {
    response.writeHead(200, { trailer: 'x-sum' }).write('body')
    response.addTrailers({ 'x-sum': '1' })
    response.end()
  },
  'after early hints': (_, response) => {
    response.writeEarlyHints({ link: '</a>; rel=preload' }, () => response.writeHead(201).end('made'))
  },
  'without a body': (_, response) => response.writeHead(204).end(),
  'empty, with a length': (_, response) => response.writeHead(503, { 'Retry-After': '7', 'content-length': 0 }).end(),
  'what was sent': (incoming, response) => {
    const { host, accept, 'content-length': length } = incoming.headers
    response.write(JSON.stringify([incoming.method, incoming.url, host, accept, length]))
    incoming.pipe(response)
  },
}

for (const [name, listener] of Object.entries(answers))
  test(`an answer ${name} is what Node's http makes of it`, async (t) => {
    const base = await listen(t, createServer(listener))
    const heard = Object.values(transports).map(async (transport) => {
      const answer = await transport(request(`${base}/a%20b?c=%C3%A4`, { method: 'POST', body: 'héllo' }))
      return [answer.status, answer.header('Retry-After'), await answer.text(1_000_000)]
    })
    const [expected, actual] = await Promise.all(heard)
    assert.deepEqual(actual, expected)
  })

test('an answer without a length ends with its connection, and can be had as bytes', async (t) => {
  const base = await saying(t, 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nall of it')
  const answer = await loopbackTransport(elsewhere)(request(base))
  for await (const bytes of answer.body) assert.equal(Buffer.from(bytes).toString(), 'all of it')
})

const faults: readonly [name: string, said: string, fault: string][] = [
  ['cut short', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', 'lost'],
  ['cut short in a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc', 'lost'],
  ['cut short in its head', 'HTTP/1.1 200 OK\r\ncontent-le', 'lost'],
  ['nothing', '', 'lost'],
  ['another language', '220 mail.example.com ESMTP\r\n', 'unusable'],
]
for (const [name, said, fault] of faults)
  for (const [carrier, transport] of Object.entries(transports))
    test(`${carrier}: an answer that is ${name} is ${fault}`, async (t) => {
      const base = await saying(t, said)
      await assert.rejects(
        async () => (await transport(request(base))).text(1_000),
        (error: Error) => error instanceof ConnectionError && error.fault === fault,
      )
    })

for (const [carrier, transport] of Object.entries(transports)) {
  test(`${carrier}: nobody there is "refused", too much is "unusable", and an abort ends the wait`, async (t) => {
    await assert.rejects(transport(request('http://127.0.0.1:1')), { name: 'ConnectionError', fault: 'refused' })

    const long = await listen(
      t,
      createServer((_, response) => response.end('x'.repeat(2_000))),
    )
    const answer = await transport(request(long))
    await assert.rejects(answer.text(1_999), { name: 'ConnectionError', fault: 'unusable' })

    const stop = new AbortController()
    const silent = net.createServer((socket) => socket.on('error', () => undefined).once('data', () => stop.abort()))
    const base = await listen(t, silent)
    const hungUp = once(silent, 'connection').then(([socket]) => once(socket as Socket, 'close'))
    await assert.rejects(transport(request(base, { signal: stop.signal })), { name: 'AbortError' })
    await hungUp
    await assert.rejects(transport(request(base, { signal: stop.signal })), { name: 'AbortError' })
  })

  test(`${carrier}: a header with a line break is not sent`, async () => {
    const headers = { authorization: 'Bearer a\r\nx-b: c' }
    await assert.rejects(async () => transport(request('http://127.0.0.1:1/', { headers })), TypeError)
  })
}

test('TLS, other machines and streams go the other way', async () => {
  const sent: string[] = []
  const other: Transport = async ({ url }) => {
    sent.push(url)
    throw new Error('sent')
  }
  const urls = ['https://127.0.0.1:1/', 'http://192.0.2.1:1/', 'http://127.0.0.1.example.com:1/']
  for (const url of urls) await assert.rejects(async () => loopbackTransport(other)(request(url)), /sent/)
  await assert.rejects(async () => loopbackTransport(other)(request('http://[::1]:1/', { isStream: true })), /sent/)
  assert.deepEqual(sent, [...urls, 'http://[::1]:1/'])
})

const chunked = (parts: readonly Uint8Array[]): Buffer[] =>
  [
    ...parts.filter((part) => part.length > 0).flatMap((part) => [`${part.length.toString(16)};x=1\r\n`, part, '\r\n']),
    '0\r\nx-sum: 1\r\n\r\n',
  ].map((part) => Buffer.from(part))

test('however the bytes of an answer arrive, they say the same', () => {
  const body = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })
  fc.assert(
    fc.property(body, fc.boolean(), fc.infiniteStream(fc.integer({ min: 1, max: 30 })), (parts, isChunked, sizes) => {
      const whole = Buffer.concat(parts)
      const head = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${whole.length}`
      const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n${head}\r\nX-A: 1\r\nx-a: 2\r\n\r\n`
      let rest = Buffer.concat([Buffer.from(text), ...(isChunked ? chunked(parts) : [whole])])
      const reader = new AnswerReader()
      while (rest.length > 0) {
        assert.equal(reader.isDone, false)
        const size = Number(sizes.next().value)
        reader.push(rest.subarray(0, size))
        rest = rest.subarray(size)
      }
      assert.equal(reader.isDone, true)
      assert.deepEqual(reader.bytes(), whole)
      assert.deepEqual([reader.status, reader.headers.get('x-a')], [200, '1, 2'])
    }),
    { numRuns: 500 },
  )
})

const ok = 'HTTP/1.1 200 OK\r\n'
const nonsense = [
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.1 OK\r\n\r\n',
  `${ok}no header\r\n\r\n`,
  `${ok}a: 1\r\n folded\r\n\r\n`,
  `${ok}content-length: 1, 1\r\n\r\na`,
  `${ok}content-length: -1\r\n\r\n`,
  `${ok}transfer-encoding: gzip\r\n\r\n`,
  `${ok}transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n`,
  `${ok}transfer-encoding: chunked\r\n\r\nzz\r\n`,
  `${ok}transfer-encoding: chunked\r\n\r\n1\r\nab\r\n`,
  `${ok}transfer-encoding: chunked\r\n\r\n${'1'.repeat(2_000)}`,
  `${ok}a: ${'b'.repeat(70_000)}`,
]
test('what is not plainly an answer is refused', () => {
  for (const text of nonsense)
    assert.throws(() => new AnswerReader().push(Buffer.from(text)), NotHttp, text.slice(0, 60))
})
