// An agent and the connection that it keeps: calls go up it while it is there, by HTTP where none can be kept, and none is lost
// with it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { WebSocketServer } from 'ws'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { freePort } from '../../../test/support/tools/free-port.ts'
import { findPeers } from '../../api/nodes/agent.ts'
import { silentLog } from '../../platform/log.ts'
import { orAborted } from '../../rules/retry.ts'
import { createConnection } from './connection.ts'

let rig: AgentRig

beforeEach(async () => {
  rig = await AgentRig.make()
})
afterEach(() => rig[Symbol.asyncDispose]())

const start = async (): Promise<void> => (await rig.launch()).ready

/** What the node asked for by HTTP, or up its connection, since then. */
const since = (count: number): readonly string[] => rig.server.requests.slice(count)

describe('an agent that keeps a connection', () => {
  it('an agent that keeps a connection reports up it', async () => {
    await start()
    assert.equal((await rig.deploy('a')).power, 'running')
    assert.ok(since(0).includes('GET /connection') && since(0).includes('POST /vms'))
    // Only what goes by HTTP says how far the agent has seen.
    assert.deepEqual(rig.server.revisions, [])
  })

  for (const [what, keepsConnections] of [
    ['a server that knows no such path', false],
    ['a proxy that cuts it off', 'cut'],
  ] as const)
    it(`an agent goes on by a stream and requests behind ${what}, and keeps a connection once it can`, async () => {
      rig.server.keepsConnections = keepsConnections
      await start()
      assert.equal((await rig.deploy('a')).power, 'running')
      assert.ok(since(0).includes('GET /stream') && rig.server.revisions.length > 0)
      rig.server.keepsConnections = true
      const count = rig.server.requests.length
      await rig.server.reconnect()
      const reports = rig.server.revisions.length
      assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'stopped' }))).power, 'stopped')
      assert.ok(since(count).includes('GET /connection') && !since(count).includes('GET /stream'))
      assert.equal(rig.server.revisions.length, reports)
    })

  it('an agent that kept a connection tries three times for another before it goes on by a stream', async () => {
    await start()
    rig.server.keepsConnections = 'cut'
    const count = rig.server.requests.length
    await rig.server.reconnect()
    assert.equal((await rig.deploy('a')).power, 'running')
    assert.equal(rig.server.cuts, 3)
    assert.ok(since(count).includes('GET /stream'))
  })

  it('an agent that kept a connection does not count tries at a server that is down', async (t) => {
    const sockets = new WebSocketServer({ noServer: true })
    const cut: string[] = []
    const server = http.createServer((_, response) => response.writeHead(404).end())
    server.once('upgrade', (request, socket, head) => {
      server.on('upgrade', (asked, later) => later.destroy(void cut.push(asked.url ?? '')))
      sockets.handleUpgrade(request, socket, head, (open) => open.close())
    })
    const port = await freePort()
    const listen = (): Promise<unknown> => once(server.listen(port, '127.0.0.1'), 'listening')
    const down = async (): Promise<void> => {
      if (!server.listening) return
      server.close().closeAllConnections()
      await once(server, 'close')
    }
    t.after(down)
    await listen()
    const url = `http://127.0.0.1:${port}`
    const connection = createConnection({
      addresses: { all: [url], after: () => url } as never,
      identity: {
        name: 'node',
        uid: 'uid',
        issueToken: async () => ({ token: 'token', renewAtMs: Infinity }),
      } as never,
      version: '3.0.0-test',
      log: silentLog,
    })
    const follow = () => connection.follow({ take() {}, heard() {} }, AbortSignal.timeout(20_000))
    await follow()
    await down()
    for (let n = 0; n < 3; n++) await assert.rejects(follow(), { fault: 'refused' })
    await listen()
    for (let n = 0; n < 2; n++) await assert.rejects(follow(), { fault: 'lost' })
    // Then it asks for a stream.
    await assert.rejects(follow(), { code: 404 })
    assert.equal(cut.length, 3)
  })

  it('a call that is given up while a token is renewed does not end others that wait for the token', async () => {
    const renewed = Promise.withResolvers<void>()
    const url = 'http://127.0.0.1:1'
    const connection = createConnection({
      addresses: { all: [url], after: () => url } as never,
      identity: {
        name: 'node',
        uid: 'uid',
        async issueToken(_: unknown, signal: AbortSignal) {
          await orAborted(renewed.promise, signal)
          return { token: 'token', renewAtMs: Infinity }
        },
      } as never,
      transport: (async () => ({ status: 200, header: () => undefined, text: async () => '{"peers":[]}' })) as never,
      version: '3.0.0-test',
      log: silentLog,
    })
    const first = new AbortController()
    const input = { body: { content: `sha256:${'0'.repeat(64)}` } }
    const [given, other] = [first.signal, new AbortController().signal].map((signal) =>
      connection.call(findPeers, input, signal),
    )
    first.abort(new Error('the VM was deleted'))
    await assert.rejects(given ?? assert.fail(), /the VM was deleted/)
    renewed.resolve()
    assert.deepEqual(await other, { peers: [] })
  })

  it('an agent whose connection is cut in the middle of calls reports again what was not answered, in order', async () => {
    await start()
    const uids = ['a', 'b', 'c']
    for (const uid of uids) await rig.deploy(uid)
    rig.server.isMute = true
    const before = rig.server.history.length
    const heard = rig.server.next('a', ({ power }) => power === 'stopped')
    for (const uid of uids) rig.server.want({ uid, power: 'stopped' })
    await heard
    // What is left behind is known only to the one that took it.
    const taken = rig.server.history.slice(before)
    rig.server.history.length = before
    rig.server.vms.clear()
    rig.server.isMute = false
    await rig.server.reconnect()
    for (const uid of uids) await rig.server.until(uid, ({ power }) => power === 'stopped')
    for (const uid of uids) {
      const seen = [...taken, ...rig.server.history.slice(before)].filter((report) => report.uid === uid)
      const generations = seen.map(({ generation }) => generation)
      assert.deepEqual(generations, generations.toSorted(), uid)
    }
  })

  it('an agent ends though a call is not answered', async () => {
    await start()
    rig.server.isMute = true
    await rig.deploy('a')
    await rig.stop()
  })
})
