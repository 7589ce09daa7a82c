// Doors of another node, from which an agent requests the chunks of an image, and which lies.
import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type NodeCredentials, peerTls } from '../../src/agent/link/peer-tls.ts'
import type { Peer } from '../../src/api/nodes/agent.ts'
import { startAuthority } from '../support/tools/node-credentials.ts'
import type { Attacker } from './attacker.ts'
import { type HostTarget, startHost } from './host-target.ts'
import type { Doors } from './suite.ts'

type Answer = (response: ServerResponse, port: number) => unknown

interface PeerTarget extends HostTarget {
  readonly peer: Peer
  readonly credentials: NodeCredentials
  /** Paths of requests that nothing asked the agent to send. */
  readonly strays: readonly string[]
}

async function startWithPeer(): Promise<PeerTarget> {
  const host = await startHost()
  const authority = await startAuthority()
  const [liar, credentials] = await Promise.all([authority.credentials('liar'), authority.credentials('host')])
  const strays: string[] = []
  const server = https.createServer({ ...peerTls(liar), rejectUnauthorized: false }, (request, response) => {
    response.on('error', () => undefined)
    const answer = byPath.get(request.url ?? '')
    if (answer) answer(response, port)
    else strays.push(request.url ?? '')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...host,
    credentials,
    strays,
    peer: {
      node: 'mini-9',
      uid: 'liar',
      ip: '127.0.0.1',
      port,
      identity: '1.host',
      key: randomBytes(32).toString('base64'),
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await host[Symbol.asyncDispose]()
    },
  }
}

/** Writes pieces for as long as the other side reads, 256 MB at most. */
async function endless(response: ServerResponse, piece: Buffer): Promise<void> {
  for (let bytes = 0; bytes < 2 ** 28 && !response.destroyed; bytes += piece.length)
    if (!response.write(piece)) await Promise.race([once(response, 'drain').catch(() => undefined), sleep(1_000)])
}

const large = randomBytes(2 ** 20)
const chunk = randomBytes(4 * 2 ** 20)

const answers: Readonly<Record<string, Answer>> = {
  'other bytes of the right length': (response) => response.end(randomBytes(chunk.length)),
  'a body without end': (response) => endless(response, large),
  'a body without end in tiny pieces': (response) => {
    response.socket?.setNoDelay(true)
    return endless(response, Buffer.from('x'))
  },
  'one byte a second': (response) => {
    const timer = setInterval(() => response.write('x'), 1_000)
    response.once('close', () => clearInterval(timer))
  },
  'a length that is too long': (response) => {
    response.writeHead(200, { 'content-length': 2 ** 45 })
    response.write(chunk)
  },
  'a length that is too short': (response) => {
    response.socket?.write(`HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n`)
    response.socket?.write(chunk)
  },
  'a redirect': (response, port) => response.writeHead(302, { location: `https://127.0.0.1:${port}/elsewhere` }).end(),
  'still fetching, for ever': (response) => response.writeHead(202).end(),
  'headers without end': (response) => {
    response.socket?.write(`HTTP/1.1 200 OK\r\n${`X-A: ${'b'.repeat(1_000)}\r\n`.repeat(5_000)}`)
  },
  'interim answers without end': (response) => {
    response.socket?.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(50_000))
  },
  nothing: () => undefined,
}

const digestOf = (name: string): string => `sha256:${hash('sha256', name)}`
const byPath = new Map(Object.entries(answers).map(([name, answer]) => [`/blobs/${digestOf(name)}`, answer]))

async function ask(attacker: Attacker, { act, peer, credentials }: PeerTarget, name: string): Promise<void> {
  // As many as a fill fetches at once.
  const request = { peer, credentials, digest: digestOf(name) }
  const reads = Array.from({ length: 8 }, () => act(attacker, 'peer', request))
  for (const acted of await Promise.all(reads)) assert.deepEqual(acted, {}, `${name}: fetched from elsewhere`)
}

/** One after the other, so that the cost of each is known. */
export const peersOneByOne: Doors<PeerTarget> = {
  start: startWithPeer,
  doors: Object.keys(answers).map((name) => ({
    name: `peer: ${name}`,
    attack: (attacker: Attacker, target: PeerTarget) => ask(attacker, target, name),
  })),
}

/** All at once, because most of their time is spent waiting. */
export const peers: Doors<PeerTarget> = {
  start: startWithPeer,
  doors: [
    {
      name: 'peer: every kind of lie',
      attack: async (attacker, target) => {
        await Promise.all(Object.keys(answers).map((name) => ask(attacker, target, name)))
        assert.deepEqual(target.strays, [], 'no redirect was followed')
      },
      // Eleven times as many reads as one fill has.
      limits: { heldMs: 1_000 },
    },
  ],
}
