// Doors of another node, from which an agent requests the chunks of an image, and which lies.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { type NodeCredentials, peerTls } from '../../src/agent/link/peer-tls.ts'
import type { Peer } from '../../src/api/nodes/agent.ts'
import { digestOf } from '../../src/images/format/manifest.ts'
import { startAuthority } from '../support/tools/node-credentials.ts'
import type { Attacker } from './attacker.ts'
import { type HostTarget, startHost } from './host-target.ts'
import { endless } from './hostile-answers.ts'
import { attackAll, isLong } from './suite.ts'

type Answer = (response: ServerResponse, port: number) => unknown

interface PeerTarget extends HostTarget {
  readonly peer: Peer
  readonly credentials: NodeCredentials
  /** Paths that the agent has requested from the liar. */
  readonly requested: ReadonlySet<string>
}

async function startWithPeer(): Promise<PeerTarget> {
  const host = await startHost()
  const authority = await startAuthority()
  const [liar, credentials] = await Promise.all([authority.credentials('liar'), authority.credentials('host')])
  const requested = new Set<string>()
  const server = https.createServer({ ...peerTls(liar), rejectUnauthorized: false }, (request, response) => {
    response.on('error', () => undefined)
    requested.add(request.url ?? '')
    byPath.get(request.url ?? '')?.(response, port)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...host,
    credentials,
    requested,
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

const large = randomBytes(2 ** 20)
const chunk = randomBytes(4 * 2 ** 20)

const answers: Readonly<Record<string, Answer>> = {
  'other bytes of the right length': (response) => response.end(randomBytes(chunk.length)),
  'a body without end': (response) => endless(response, large, 256),
  'a body without end in tiny pieces': (response) => {
    response.socket?.setNoDelay(true)
    return endless(response, Buffer.from('x'), 256)
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

const pathOf = (name: string): string => `/blobs/${digestOf(name)}`
const byPath = new Map(Object.entries(answers).map(([name, answer]) => [pathOf(name), answer]))

/** As many as a fill fetches at once. */
const fillReads = 8

async function read(
  attacker: Attacker,
  { act, peer, credentials, requested }: PeerTarget,
  name: string,
  count: number,
): Promise<void> {
  const request = { peer, credentials, digest: digestOf(name) }
  const reads = Array.from({ length: count }, () => act(attacker, 'peer', request))
  for (const outcome of await Promise.all(reads)) assert.deepEqual(outcome, {}, `${name}: fetched from elsewhere`)
  assert.ok(requested.has(pathOf(name)), `${name}: the liar was asked`)
  assert.deepEqual([...requested].filter((path) => !byPath.has(path)), [], 'no redirect was followed') // biome-ignore format: one check
}

const names = Object.keys(answers)
attackAll<PeerTarget>('other nodes', {
  start: startWithPeer,
  doors: isLong
    ? names.map((name) => ({
        name: `peer: ${name}`,
        attack: (attacker: Attacker, target: PeerTarget) => read(attacker, target, name, fillReads),
      }))
    : [
        {
          // At once, because most of their time is spent waiting.
          name: 'peer: every kind of lie',
          attack: async (attacker, target) => {
            await Promise.all(names.map((name) => read(attacker, target, name, 2)))
          },
        },
      ],
})
