// Content from peers: only between nodes of the cluster, only with a ticket, only with the right digest, and never with long waits.
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
import tls from 'node:tls'
import { forge, startAuthority, validFor } from '../../../test/support/tools/node-credentials.ts'
import type { Peer } from '../../api/nodes/agent.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { createLog, silentLog } from '../../platform/log.ts'
import { createPeerTickets } from '../../server/nodes/peer-tickets.ts'
import { type NodeCredentials, peerTls, ticketHeader } from '../link/peer-tls.ts'
import { fetchedContent, type OpenBlob } from './content-source.ts'
import { startPeerServer } from './peer-server.ts'
import { createPeers } from './peers.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-peers-'))
const store = await openContentFolder(path.join(root, 'content'))
const clock = { nowMs: Date.now(), now: () => new Date(clock.nowMs) }
const secret = randomBytes(32)
const tickets = createPeerTickets(() => secret, clock)
/** The time since the start of the agents. */
const uptime = { ms: 0 }
const nowMs = (): number => uptime.ms
const authority = await startAuthority()
const [one, two, three] = await Promise.all(['uid-1', 'uid-2', 'uid-3'].map((uid) => authority.credentials(uid)))
assert.ok(one && two && three)
const logLines: string[] = []
const log = createLog('debug', (line) => logLines.push(line))
const server = await startPeerServer({ port: 0, store: async () => store, log, nowMs })
server.trust(tickets.secretsFor('uid-1'), one)
after(async () => {
  await server.stop()
  await fs.rm(root, { recursive: true, force: true })
})
const bytes = randomBytes(3_000_000)
const { digest } = await store.put(bytes)
const signal = new AbortController().signal
const named = { servername: '', checkServerIdentity: () => undefined }
const fromServer = Buffer.from('from the server')

/** The peer's status for a client that does not verify it; undefined without a response. */
async function come(
  shown: tls.SecureContextOptions,
  ticket: { identity: string; key: string } | undefined = tickets.issue('uid-1', 'uid-2'),
): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const request = https.get({
    ...{ host: '127.0.0.1', port: server.port, path: `/blobs/${digest}`, agent: false, rejectUnauthorized: false },
    ...shown,
    ...(ticket && { headers: { authorization: ticketHeader(ticket) } }),
  })
  request.on('error', () => resolve(undefined)).on('response', ({ statusCode }) => resolve(statusCode))
  return promise.finally(() => request.destroy())
}
const showing = ({ certificate: cert, key }: NodeCredentials) => ({ cert, key })

/** Reads content on a node that was referred to this peer. The server has other content. */
async function ask(
  change: Partial<Peer> = {},
  wanted = digest,
  silenceMs = 600_000,
  credentials: NodeCredentials | undefined = two,
): Promise<Buffer> {
  const ticket = tickets.issue('uid-1', 'uid-2')
  const peer: Peer = { node: 'node-1', uid: 'uid-1', ip: '127.0.0.1', port: server.port, ...ticket, ...change }
  const find = async () => [peer]
  const peers = createPeers({ find, credentials: () => credentials, log, silenceMs, chunkMs: 600_000 })
  const near = await peers.near(digest, signal)
  return (await near?.(wanted, signal)) ?? fromServer
}

/** A peer that responds to any client, with anything. */
async function peerThat(serve: RequestListener, credentials = three) {
  const listening = https.createServer({ ...peerTls(credentials), rejectUnauthorized: false }, serve)
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as net.AddressInfo
  const peer: Peer = { node: 'node-9', uid: 'uid-3', ip: '127.0.0.1', port, ...tickets.issue('uid-3', 'uid-2') }
  return {
    peer,
    async [Symbol.asyncDispose]() {
      listening.closeAllConnections()
      await new Promise((resolve) => listening.close(resolve))
    },
  }
}

describe('content of a peer', () => {
  it('content of a peer is given to a node with a ticket', async () => {
    assert.ok((await ask()).equals(bytes))
  })

  it('content of a peer is refused to a node of the cluster without a ticket, or with that of another node', async () => {
    const [own, other] = [tickets.issue('uid-1', 'uid-2'), tickets.issue('uid-1', 'uid-3')]
    const wrong = [
      { ...own, key: randomBytes(32).toString('base64') },
      { ...own, key: own.key.slice(0, 8) },
      { ...own, identity: other.identity },
      { ...own, identity: '' },
      { ...own, identity: '__proto__.uid-2' },
      other,
      tickets.issue('uid-3', 'uid-2'),
      { identity: 'x', key: 'not base64' },
    ]
    for (const ticket of wrong) {
      assert.equal(await come(showing(two), ticket), 401, JSON.stringify(ticket))
      assert.ok((await ask(ticket)).equals(fromServer), JSON.stringify(ticket))
    }
    assert.equal(await come(showing(two)), 200)
    const bare = https.get({ host: '127.0.0.1', port: server.port, path: '/', agent: false, ...peerTls(two), ...named })
    assert.equal(((await once(bare, 'response')) as [{ statusCode: number }])[0].statusCode, 401)
    bare.destroy()
    const lines = logLines.join('')
    for (const { key } of [own, other]) assert.ok(!lines.includes(key) && !lines.includes('svc3-ticket'))
  })

  it('content of a peer is refused to clients with a foreign or expired certificate, with any ticket', async () => {
    const foreign = await (await startAuthority()).credentials('uid-2')
    const [late, early] = [validFor(-3, -1), validFor(1, 3)]
    const [ended, coming] = [await authority.credentials('uid-2', late), await authority.credentials('uid-2', early)]
    const strangers: Record<string, tls.SecureContextOptions> = {
      'no certificate': {},
      'one of another authority': showing(foreign),
      'one that a node of the cluster signed': showing(await forge(three, 'uid-2')),
      'one that has ended': showing(ended),
      'one that is not valid yet': showing(coming),
      'TLS 1.2': { ...showing(two), maxVersion: 'TLSv1.2' },
    }
    for (const [stranger, shown] of Object.entries(strangers)) assert.equal(await come(shown), undefined, stranger)
    for (const credentials of [foreign, ended, coming])
      assert.ok((await ask({}, digest, 600_000, credentials)).equals(fromServer))
    assert.match(logLines.join(''), /not valid now; check the clocks/)
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

  it('content of a peer is refused to all clients before the server has sent it a certificate', async () => {
    const bare = await startPeerServer({ port: 0, store: async () => store, log: silentLog, nowMs })
    bare.trust(tickets.secretsFor('uid-1'), undefined)
    assert.equal(await come({ ...showing(two), port: bare.port } as tls.SecureContextOptions), undefined)
    await bare.stop()
  })

  it('content of a peer is served with the next certificate as soon as it arrives', async () => {
    const next = await authority.credentials('uid-1')
    const shown = async (): Promise<string | undefined> => {
      const socket = tls.connect({ host: '127.0.0.1', port: server.port, ...peerTls(two), ...named })
      await once(socket, 'secureConnect')
      const certificate = socket.getPeerX509Certificate()?.toString()
      socket.destroy()
      return certificate
    }
    assert.equal((await shown())?.trim(), one.certificate.trim())
    server.trust(tickets.secretsFor('uid-1'), next)
    assert.equal((await shown())?.trim(), next.certificate.trim())
    assert.ok((await ask()).equals(bytes))
    for (const useless of [
      { ...one, certificate: 'none' },
      { ...one, key: three.key },
    ]) {
      server.trust(tickets.secretsFor('uid-1'), useless)
      assert.equal((await shown())?.trim(), next.certificate.trim())
    }
    assert.match(logLines.join(''), /cannot serve other nodes with the certificate/)
    server.trust(tickets.secretsFor('uid-1'), { ...one })
    assert.equal((await shown())?.trim(), one.certificate.trim())
  })

  it('content of a peer is not served on a resumed TLS session', async () => {
    const connect = (session?: Buffer) =>
      tls.connect({ host: '127.0.0.1', port: server.port, ...peerTls(two), ...named, ...(session && { session }) })
    const first = connect()
    first.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [session] = (await once(first, 'session')) as [Buffer]
    first.destroy()
    const second = connect(session)
    await once(second, 'secureConnect')
    assert.equal(second.isSessionReused(), false)
    second.destroy()
  })

  it('content of a peer is requested only from the node that the server named; another node receives nothing', async () => {
    const foreign = await (await startAuthority()).credentials('uid-3')
    const impostors: Record<string, [NodeCredentials, RegExp]> = {
      'another node of the cluster': [two, /it is not the node that the server named/],
      'one of another authority': [foreign, /self-signed certificate in certificate chain|unable to verify/],
      'one whose certificate has ended': [
        await authority.credentials('uid-3', validFor(-3, -1)),
        /check the clock of this/,
      ],
      'one whose certificate begins later': [
        await authority.credentials('uid-3', validFor(1, 3)),
        /check the clock of this/,
      ],
    }
    for (const [impostor, [credentials, reason]] of Object.entries(impostors)) {
      let heard = 0
      await using bad = await peerThat((_, response) => {
        heard++
        response.end(bytes)
      }, credentials)
      logLines.length = 0
      assert.ok((await ask(bad.peer)).equals(fromServer), impostor)
      assert.equal(heard, 0, impostor)
      assert.match(logLines.join(''), reason, impostor)
    }
    await using right = await peerThat((_, response) => void response.end(bytes))
    assert.ok((await ask(right.peer)).equals(bytes))
  })

  it('content of a peer is not requested without a certificate', async () => {
    const found = { node: 'x', uid: 'uid-1', ip: '127.0.0.1', port: server.port, ...tickets.issue('uid-1', 'uid-2') }
    const peers = createPeers({ find: async () => [found], credentials: () => undefined, log })
    const near = await peers.near(digest, signal)
    assert.equal(await near?.(digest, signal), undefined)
  })

  it('content of a peer still arrives when a fetch takes longer than its ticket is valid', async () => {
    server.trust(tickets.secretsFor('uid-1'), one)
    let asked = 0
    const find = async (): Promise<Peer[]> => {
      asked++
      return [{ node: 'node-1', uid: 'uid-1', ip: '127.0.0.1', port: server.port, ...tickets.issue('uid-1', 'uid-2') }]
    }
    const peers = createPeers({ find, credentials: () => two, log, nowMs, silenceMs: 600_000, chunkMs: 600_000 })
    const near = await peers.near(digest, signal)
    for (let minutes = 0; minutes <= 36; minutes += 6) {
      assert.ok((await near?.(digest, signal))?.equals(bytes), `after ${minutes} minutes`)
      clock.nowMs += 6 * 60_000
      uptime.ms += 6 * 60_000
      server.trust(tickets.secretsFor('uid-1'), one)
    }
    assert.equal(asked, 7)
  })

  it('content of a peer is refused with an old ticket', async () => {
    const old = tickets.issue('uid-1', 'uid-2')
    clock.nowMs += 21 * 60_000
    server.trust(tickets.secretsFor('uid-1'), one)
    assert.ok((await ask(old)).equals(fromServer))
    assert.ok((await ask()).equals(bytes))
  })

  it('content of a peer is served with a ticket of the previous and of the next epoch', async () => {
    server.trust(tickets.secretsFor('uid-1'), one)
    const before = tickets.issue('uid-1', 'uid-2')
    clock.nowMs += 10 * 60_000
    assert.ok((await ask()).equals(bytes), 'of the one to come')
    server.trust(tickets.secretsFor('uid-1'), one)
    assert.ok((await ask(before)).equals(bytes), 'of the one before')
  })

  it('content of a peer is refused to all clients after a quarter of an hour without contact to the server', async () => {
    server.trust(tickets.secretsFor('uid-1'), one)
    uptime.ms += 15 * 60_000
    assert.ok((await ask()).equals(bytes))
    uptime.ms += 1
    assert.ok((await ask()).equals(fromServer))
    server.trust(tickets.secretsFor('uid-1'), one)
    assert.ok((await ask()).equals(bytes))
  })

  it('content of a peer that is missing or damaged is fetched from the server', async () => {
    const none = `sha256:${'0'.repeat(64)}`
    for (const wanted of [none, '../../etc/passwd']) assert.ok((await ask({}, wanted)).equals(fromServer))
    const { digest: bad } = await store.put(randomBytes(100_000))
    const hex = bad.slice('sha256:'.length)
    await fs.writeFile(path.join(store.folder, 'blobs/sha256', hex.slice(0, 2), hex.slice(2)), randomBytes(100_000))
    assert.ok((await ask({}, bad)).equals(fromServer))
  })

  it('content of a peer that does not arrive is fetched from the server', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const silent = net.createServer(() => t.mock.timers.tick(3_000)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as net.AddressInfo
    assert.ok((await ask({ port }, digest, 3_000)).equals(fromServer))
    silent.close()
    assert.ok((await ask({ port })).equals(fromServer), 'nobody listens')
  })

  it('content of a peer that is too slow or wrong is fetched from the server, and the peer is avoided for a while', async (t) => {
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
      const find = async () => [bad.peer]
      const peers = createPeers({ find, credentials: () => two, log: silentLog, nowMs, silenceMs: 600_000 })
      const open: OpenBlob = async (_, during) =>
        (async function* () {
          during.throwIfAborted()
          yield wanted
        })()
      const read = async (): Promise<void> => {
        const own = await openContentFolder(await fs.mkdtemp(path.join(root, 'node-')))
        const source = fetchedContent({ store: own, near: await peers.near(name, signal), open })
        // The same fetch avoids it too.
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

describe('timeout of the server', () => {
  it("an agent's timeout of the server starts with the request to the server, however long peers took", async (t) => {
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
    const retry = { attempts: 1, firstDelayMs: 1, maxDelayMs: 1 }
    const own = await openContentFolder(await fs.mkdtemp(path.join(root, 'node-')))
    const read = fetchedContent({ store: own, near, open, retry }).read(digest, bytes.length)
    await isAsked.promise
    t.mock.timers.tick(600_000)
    answer.resolve(undefined)
    assert.ok((await read).equals(bytes))
  })
})
