// Content from node to node: only with a ticket, only what its digest says, and never at the price of waiting long.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import type { Peer } from '../api/agent.ts'
import { openStore } from '../images/store.ts'
import { silentLog } from '../platform/log.ts'
import { createPeerTickets } from '../server/peer-tickets.ts'
import type { OpenBlob } from './image-content-source.ts'
import { startPeerServer } from './peer-server.ts'
import { createPeers } from './peers.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-peers-'))
const store = await openStore(path.join(root, 'content'))
const clock = { nowMs: Date.now(), now: () => new Date(clock.nowMs) }
const secret = randomBytes(32)
const tickets = createPeerTickets(() => secret, clock)
const server = await startPeerServer({ port: 0, store: async () => store, log: silentLog })
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
  const peers = createPeers({ find: async () => [peer], log: silentLog, silenceMs })
  const open: OpenBlob = async () =>
    (async function* () {
      yield fromServer
    })()
  const around = await peers.around(open, digest, signal)
  const pieces: Uint8Array[] = []
  for await (const piece of await around(wanted, signal)) pieces.push(piece)
  return Buffer.concat(pieces)
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

  it('that it does not have, or that is damaged, comes from the server', async () => {
    const none = `sha256:${'0'.repeat(64)}`
    for (const wanted of [none, '../../etc/passwd']) assert.ok((await ask({}, wanted)).equals(fromServer))
    const { digest: bad } = await store.put(randomBytes(100_000))
    const hex = bad.slice('sha256:'.length)
    await fs.writeFile(path.join(store.folder, 'blobs/sha256', hex.slice(0, 2), hex.slice(2)), randomBytes(100_000))
    assert.ok((await ask({}, bad)).equals(fromServer))
  })

  it('that does not come is not waited for', async () => {
    const silent = net.createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as net.AddressInfo
    assert.ok((await ask({ port }, digest, 300)).equals(fromServer))
    silent.close()
    assert.ok((await ask({ port })).equals(fromServer), 'nobody listens')
  })
})
