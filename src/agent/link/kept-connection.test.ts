// The kept connection of an agent: calls use it while it is open and are repeated when it is lost. If a proxy does not pass
// WebSockets, the agent logs it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { WebSocketServer } from 'ws'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { startHttpProxy } from '../../../test/support/stand-ins/http-proxy.ts'
import { readableLog } from '../../../test/support/tools/agent-log.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { findPeers } from '../../api/nodes/agent.ts'
import { silentLog } from '../../platform/log.ts'
import { orAborted } from '../../platform/retry.ts'
import { createConnection } from './connection.ts'
import { LineTooLong } from './kept-connection.ts'

let rig: AgentRig

beforeEach(async () => {
  rig = await AgentRig.make()
})
afterEach(() => rig[Symbol.asyncDispose]())

const start = async (): Promise<void> => (await rig.launch()).ready

describe('an agent that keeps a connection', () => {
  it('an agent sends reports on its kept connection', async () => {
    await start()
    assert.equal((await rig.deploy('a')).power, 'running')
    assert.ok(rig.server.requests.includes('GET /connection') && rig.server.requests.includes('POST /vms'))
    assert.equal(rig.server.reportsByHttp, 0)
  })

  it('an agent ends a connection with a message that is too long, and reports the length', async (t) => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    t.after(() => server.close())
    await once(server, 'listening')
    server.on('connection', (socket) => socket.send('x'.repeat(2_000)))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const connection = createConnection({
      addresses: { all: [url], after: () => url } as never,
      identity: {
        name: 'node',
        uid: 'uid',
        issueToken: async () => ({ token: 'token', renewAtMs: Infinity }),
      } as never,
      version: '3.0.0-test',
      maxLineBytes: 1_000,
      log: silentLog,
    })
    const following = connection.follow({ take() {}, heard() {} }, AbortSignal.timeout(20_000))
    await assert.rejects(following, LineTooLong)
  })

  it('a call that is aborted while a token is renewed does not end other calls that wait for the token', async () => {
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

  it('an agent whose connection is cut during calls repeats reports that were not answered, in order', async () => {
    await start()
    const uids = ['a', 'b', 'c']
    for (const uid of uids) await rig.deploy(uid)
    rig.server.isMute = true
    const before = rig.server.history.length
    const heard = rig.server.next('a', ({ power }) => power === 'stopped')
    for (const uid of uids) rig.server.want({ uid, power: 'stopped' })
    await heard
    // The server loses what it received before.
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

  it('an agent stops although a call was not answered', async () => {
    await start()
    rig.server.isMute = true
    await rig.deploy('a')
    await rig.stop()
  })
})

describe('an agent behind a proxy', () => {
  for (const [what, manner, problem] of [
    [
      'refuses WebSockets',
      426,
      /^The proxy in front of (\S+) did not pass a WebSocket \(HTTP 426\)\. Let it pass Upgrade for/,
    ],
    [
      'forbids WebSockets',
      403,
      /^The proxy in front of (\S+) did not pass a WebSocket \(HTTP 403\)\. Let it pass Upgrade for/,
    ],
    [
      'requests a login',
      401,
      /^The proxy in front of (\S+) did not pass a WebSocket \(HTTP 401\)\. Let it pass Upgrade for/,
    ],
    [
      'removes the Upgrade',
      'strip',
      /^The proxy in front of (\S+) did not pass a WebSocket \(HTTP 400\)\. Let it pass Upgrade for/,
    ],
    [
      'closes the connection',
      'cut',
      /^Cannot reach (\S+): the connection was lost \(\w+\) before a WebSocket was open\. If this repeats: .* Upgrade/,
    ],
  ] as const)
    it(`an agent behind a proxy that ${what} logs it once, backs off, and connects when it can`, async () => {
      await using proxy = await startHttpProxy(rig.server.apiUrl, manner)
      const { log, lines } = readableLog()
      const agent = await rig.launch({ apiUrls: [proxy.url], log })
      await eventually(() => assert.ok(proxy.askedMs.length >= 4))
      const waits = proxy.askedMs.slice(1, 4).map((ms, index) => ms - (proxy.askedMs[index] ?? 0))
      // At least half of 100, 200 and 400 ms, as after other failures.
      assert.ok(
        waits.every((wait, index) => wait >= 45 * 2 ** index),
        String(waits),
      )
      const said = lines.filter(({ message }) => message === 'no connection to the server; VMs keep running')
      assert.deepEqual(
        said.map((line) => problem.exec(line.problem ?? '')?.[1]),
        [proxy.url],
        JSON.stringify(said),
      )
      // Requests continue, so the server has reports of the node.
      assert.ok(rig.server.nodes.length > 0)
      proxy.manner = 'pass'
      await agent.ready
      assert.equal((await rig.deploy('a')).power, 'running')
      assert.equal(lines.at(-1)?.message, 'connected to the server again')
    })

  it('an agent behind a proxy whose server is down does not blame the proxy', async () => {
    await using proxy = await startHttpProxy(rig.server.apiUrl, 502)
    const { log, lines } = readableLog()
    await rig.launch({ apiUrls: [proxy.url], log })
    await eventually(() => assert.ok(proxy.askedMs.length >= 2))
    assert.match(lines.at(-1)?.problem ?? '', /answered 502 \(ServiceUnavailable\)$/)
    proxy.manner = 426
    await eventually(() => assert.match(lines.at(-1)?.problem ?? '', /did not pass a WebSocket/))
  })
})
