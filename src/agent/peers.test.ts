// Content from node to node: only with a ticket, only what its digest says, and never at the price of waiting long.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import type { Peer } from '../api/agent.ts'
import { openStore } from '../images/store.ts'
import { silentLog } from '../platform/log.ts'
import { createPeerTickets } from '../server/peer-tickets.ts'
import { fetchedContent, type OpenBlob } from './image-content-source.ts'
import { startPeerServer } from './peer-server.ts'
import { createPeers, pskTls } from './peers.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-peers-'))
const store = await openStore(path.join(root, 'content'))
const clock = { nowMs: Date.now(), now: () => new Date(clock.nowMs) }
const secret = randomBytes(32)
const tickets = createPeerTickets(() => secret, clock)
/** Of the agents, since they were started. */
const uptime = { ms: 0 }
const nowMs = (): number => uptime.ms
const server = await startPeerServer({ port: 0, store: async () => store, log: silentLog, nowMs })
server.trust(tickets.secretsFor('uid-1'))
after(async () => {
  await server.stop()
  await fs.rm(root, { recursive: true, force: true })
})
const bytes = randomBytes(3_000_000)
const { digest } = await store.put(bytes)
const signal = new AbortController().signal
const fromServer = Buffer.from('from the server')

/** What a node gets that was told of this peer; the server says something of its own. */
async function ask(change: Partial<Peer> = {}, wanted = digest, silenceMs = 600_000): Promise<Buffer> {
  const ticket = tickets.issue('uid-1', 'node-2')
  const peer: Peer = { node: 'node-1', ip: '127.0.0.1', port: server.port, ...ticket, ...change }
  const peers = createPeers({ find: async () => [peer], log: silentLog, silenceMs, chunkMs: 600_000 })
  const near = await peers.near(digest, signal)
  return (await near?.(wanted, signal)) ?? fromServer
}

/** A peer that answers as it likes, to anybody. */
async function peerThat(serve: RequestListener) {
  const key = randomBytes(32)
  const listening = https.createServer({ ...pskTls, pskCallback: () => key }, serve).listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as net.AddressInfo
  const peer: Peer = { node: 'node-9', ip: '127.0.0.1', port, identity: 'x', key: key.toString('base64') }
  return {
    peer,
    async [Symbol.asyncDispose]() {
      listening.closeAllConnections()
      await new Promise((resolve) => listening.close(resolve))
    },
  }
}

describe('content of a peer', () => {
  it('is given to a node with a ticket', async () => {
    assert.ok((await ask()).equals(bytes))
  })

  it('is given to nobody else', async () => {
    const other = tickets.issue('uid-1', 'node-3')
    const strangers: Partial<Peer>[] = [
      { key: randomBytes(32).toString('base64') },
      { identity: other.identity },
      { identity: '' },
      { identity: '__proto__.node-2' },
      tickets.issue('uid-2', 'node-2'),
    ]
    for (const stranger of strangers) assert.ok((await ask(stranger)).equals(fromServer), JSON.stringify(stranger))
    const plain = net.connect(server.port, '127.0.0.1')
    plain.on('error', () => undefined)
    plain.end(`GET /blobs/${digest} HTTP/1.1\r\nHost: x\r\n\r\n`)
    let said = 0
    plain.on('data', (piece: Buffer) => {
      said += piece.length
    })
    await once(plain, 'close')
    assert.ok(said < 100, `${said} bytes`)
  })

  it('is not given any more on an old ticket', async () => {
    const old = tickets.issue('uid-1', 'node-2')
    clock.nowMs += 21 * 60_000
    server.trust(tickets.secretsFor('uid-1'))
    assert.ok((await ask(old)).equals(fromServer))
    assert.ok((await ask()).equals(bytes))
  })

  it('is given on a ticket of the epoch before, and of the one to come', async () => {
    server.trust(tickets.secretsFor('uid-1'))
    const before = tickets.issue('uid-1', 'node-2')
    clock.nowMs += 10 * 60_000
    assert.ok((await ask()).equals(bytes), 'of the one to come')
    server.trust(tickets.secretsFor('uid-1'))
    assert.ok((await ask(before)).equals(bytes), 'of the one before')
  })

  it('is given to nobody when the server has not been heard for a quarter of an hour', async () => {
    server.trust(tickets.secretsFor('uid-1'))
    uptime.ms += 15 * 60_000
    assert.ok((await ask()).equals(bytes))
    uptime.ms += 1
    assert.ok((await ask()).equals(fromServer))
    server.trust(tickets.secretsFor('uid-1'))
    assert.ok((await ask()).equals(bytes))
  })

  it('that it does not have, or that is damaged, comes from the server', async () => {
    const none = `sha256:${'0'.repeat(64)}`
    for (const wanted of [none, '../../etc/passwd']) assert.ok((await ask({}, wanted)).equals(fromServer))
    const { digest: bad } = await store.put(randomBytes(100_000))
    const hex = bad.slice('sha256:'.length)
    await fs.writeFile(path.join(store.folder, 'blobs/sha256', hex.slice(0, 2), hex.slice(2)), randomBytes(100_000))
    assert.ok((await ask({}, bad)).equals(fromServer))
  })

  it('that does not come is not waited for', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const silent = net.createServer(() => t.mock.timers.tick(3_000)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as net.AddressInfo
    assert.ok((await ask({ port }, digest, 3_000)).equals(fromServer))
    silent.close()
    assert.ok((await ask({ port })).equals(fromServer), 'nobody listens')
  })

  it('that comes too slowly or wrong comes from the server, and who sent it is left alone for a while', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const wanted = randomBytes(1_000)
    const { digest: name } = await store.put(wanted)
    const faults: Record<string, RequestListener> = {
      slow: (_, response) => {
        response.writeHead(200, { 'content-length': wanted.length }).write(wanted.subarray(1))
        t.mock.timers.tick(10_000)
      },
      wrong: (_, response) => void response.end('something else'),
      refusing: (_, response) => void response.writeHead(500).end(),
    }
    for (const [fault, serve] of Object.entries(faults)) {
      let asked = 0
      await using bad = await peerThat((request, response) => {
        asked++
        serve(request, response)
      })
      const peers = createPeers({ find: async () => [bad.peer], log: silentLog, nowMs, silenceMs: 600_000 })
      const open: OpenBlob = async (_, during) =>
        (async function* () {
          during.throwIfAborted()
          yield wanted
        })()
      const read = async (): Promise<void> => {
        const own = await openStore(await fs.mkdtemp(path.join(root, 'node-')))
        const source = fetchedContent({ store: own, near: await peers.near(name, signal), open })
        // The same fetch does not come back to it, either.
        for (const _ of ['first', 'second']) {
          assert.ok((await source.read(name, wanted.length)).equals(wanted), fault)
          await own.deleteUnused(name, Infinity)
        }
      }
      await read()
      assert.equal(asked, 1, fault)
      uptime.ms += 5 * 60_000
      await read()
      assert.equal(asked, 1, `${fault}: it is asked again too early`)
      uptime.ms += 1
      await read()
      assert.equal(asked, 2, `${fault}: it is never asked again`)
    }
  })
})

describe('the patience with the server', () => {
  it('begins when it is asked, however long others took', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const [isAsked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()]
    const near = (): Promise<undefined> => {
      isAsked.resolve()
      return answer.promise
    }
    const open: OpenBlob = async (_, during) =>
      (async function* () {
        during.throwIfAborted()
        yield bytes
      })()
    const retry = { attempts: 1, firstDelayMs: 1, maxDelayMs: 1, maxRetryAfterMs: 0 }
    const own = await openStore(await fs.mkdtemp(path.join(root, 'node-')))
    const read = fetchedContent({ store: own, near, open, retry }).read(digest, bytes.length)
    await isAsked.promise
    t.mock.timers.tick(600_000)
    answer.resolve(undefined)
    assert.ok((await read).equals(bytes))
  })
})
