// A peer that stops responding while its connection stays open. Time is mocked, and the network is real.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type net from 'node:net'
import { after, before, describe, it, mock, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { startTcpProxy, type TcpProxy } from '../../../test/support/stand-ins/tcp-proxy.ts'
import { CallFailure, EtcdConnection } from './connection.ts'

const nobodyAnswers = '/silent'
const isAnswered = '/answered'
/** The deadline of the call. A failure before it was detected by a ping. */
const deadlineMs = 60_000
const question = Buffer.from('question')

interface Peer {
  readonly connection: EtcdConnection
  readonly proxy: TcpProxy
  /** Resolves when it has received a ping. */
  readonly pinged: Promise<void>
}

let nowMs = 0
// Mocked once for all tests, because a closing connection clears its timers where it created them.
before(() => {
  mock.method(performance, 'now', () => nowMs)
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
})
after(() => mock.reset())

/** Advances the time, and runs what follows from that. */
async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 50) {
    nowMs += 50
    mock.timers.tick(50)
  }
  // The judgement comes one turn of the event loop later.
  await setImmediate()
}

async function startPeer(t: TestContext): Promise<Peer> {
  const { promise: pinged, resolve } = Promise.withResolvers<void>()
  const server = http2.createServer()
  server.on('session', (session) => session.on('ping', () => resolve()))
  server.on('stream', (stream, headers) => {
    if (headers[':path'] !== isAnswered) return
    stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy = await startTcpProxy((server.address() as net.AddressInfo).port)
  const connection = await EtcdConnection.open({ url: `http://127.0.0.1:${proxy.port}` })
  t.after(async () => {
    connection.close()
    await proxy[Symbol.asyncDispose]()
    server.close()
  })
  return { connection, proxy, pinged }
}

/** How the call ends. */
const watch = (connection: EtcdConnection): Promise<CallFailure> =>
  new Promise((ended) => void connection.stream(nobodyAnswers, {}, { message: () => undefined, ended }))

const failureOf = (call: Promise<Buffer>): Promise<unknown> => call.catch((error: unknown) => error)

describe('silent peers', () => {
  for (const loss of ['requests', 'answers'] as const)
    it(`a peer whose ${loss} are lost is noticed soon after a call`, async (t) => {
      const { connection, proxy } = await startPeer(t)
      const watched = watch(connection)
      await connection.unary(isAnswered, question, {}, deadlineMs)
      await pass(3_000)
      assert.ok(connection.isUsable, 'nothing was asked')

      proxy.lose(loss)
      const failure = failureOf(connection.unary(isAnswered, question, {}, deadlineMs))
      await proxy.lost(1)
      await pass(1_450)
      assert.ok(connection.isUsable, 'it may be slow')
      await pass(350)
      assert.ok(!connection.isUsable, 'it is gone')
      for (const failed of [await failure, await watched]) {
        assert.ok(failed instanceof CallFailure)
        assert.equal(failed.kind, 'unclear')
        assert.match(failed.message, /no answer for \d+ ms$/)
      }
    })

  it('a peer that stops responding is noticed if only a watch is open', async (t) => {
    const { connection, proxy } = await startPeer(t)
    const watched = watch(connection)
    await connection.unary(isAnswered, question, {}, deadlineMs)
    proxy.lose('answers')
    await pass(6_450)
    assert.ok(connection.isUsable, 'etcd would hang up on who asks more often')
    await pass(350)
    assert.ok(!connection.isUsable, 'it is gone')
    assert.equal((await watched).kind, 'unclear')
  })

  it('a slow peer that answers pings is kept', { timeout: 10_000 }, async (t) => {
    const { connection, pinged } = await startPeer(t)
    const failure = failureOf(connection.unary(nobodyAnswers, question, {}, deadlineMs))
    await pass(750)
    await pinged
    // The answer to the call arrives after that to the ping, so only the ping can have kept the connection.
    await connection.unary(isAnswered, question, {}, deadlineMs)
    await pass(1_500)
    assert.ok(connection.isUsable)
    connection.close()
    assert.ok((await failure) instanceof CallFailure)
  })
})
