// Many nodes fetch one image at the same time, each with a separate store and peer server on loopback: the source sends it about
// once, even if some nodes die, and every node gets the right bytes.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { startAuthority } from '../../../test/support/tools/node-credentials.ts'
import type { Peer } from '../../api/nodes/agent.ts'
import { fileSource } from '../../images/content/blocks.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { Syncing } from '../../images/content/syncing.ts'
import type { Chunk, Manifest } from '../../images/format/format.ts'
import { packLayer } from '../../images/pack/chunks.ts'
import { putManifest } from '../../images/pack/stored-manifests.ts'
import { silentLog } from '../../platform/log.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { createChunkHolders } from '../../server/nodes/chunk-holders.ts'
import { createPeerTickets } from '../../server/nodes/peer-tickets.ts'

import { ContentFetches, fetchedContent } from './content-source.ts'
import { startPeerServer } from './peer-server.ts'
import { createPeers } from './peers.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-together-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const clock = { now: () => new Date() }
const secret = randomBytes(32)
const tickets = createPeerTickets(() => secret, clock)
const authority = await startAuthority()
const pieceBytes = 2 ** 16
const chunkCount = 30

/** Its chunks are small, because there are many nodes in this process. */
const origin = await openContentFolder(path.join(root, 'origin'))
const disk = randomBytes(chunkCount * pieceBytes)
await fs.writeFile(path.join(root, 'disk.raw'), disk)
const file = await fs.open(path.join(root, 'disk.raw'), 'r')
const chunks: Chunk[] = []
for (let offset = 0; offset < disk.length; offset += pieceBytes) {
  const layer = await packLayer([{ offset, length: pieceBytes, at: offset }], fileSource(file, disk.length), origin)
  chunks.push(...layer.chunks)
}
await file.close()
const manifest: Manifest = {
  formatVersion: 1,
  architecture: 'arm64',
  virtualSizeBytes: disk.length,
  boot: { kind: 'firmware' },
  layers: [{ chunks }],
}
const content = await putManifest(origin, manifest)
const imageBytes = chunks.reduce((sum, { storedBytes }) => sum + storedBytes, 0)

/** Returns the bytes that the source has sent. `dies`: nodes that end in the middle and no longer respond. */
async function together(count: number, dies: (index: number) => boolean = () => false): Promise<number> {
  const folder = await fs.mkdtemp(path.join(root, 'run-'))
  const holders = createChunkHolders(clock)
  const reach = new Map<string, { uid: string; port: number }>()
  let sentBytes = 0
  let waiting = Promise.resolve()
  /** Sends one chunk at a time, as a link of limited rate does. */
  const send = async (digest: string): Promise<Buffer> => {
    const bytes = await origin.read(digest, 2 ** 24)
    sentBytes += bytes.length
    waiting = waiting.then(() => setTimeout(5))
    await waiting
    return bytes
  }
  const run = async (index: number): Promise<void> => {
    const [name, uid] = [`n${index}`, `uid-${index}`]
    const credentials = await authority.credentials(uid)
    const store = await openContentFolder(path.join(folder, name, 'content'))
    const fetches = new ContentFetches()
    const server = await startPeerServer({ port: 0, store: async () => store, fetches, log: silentLog })
    server.trust(tickets.secretsFor(uid), credentials)
    reach.set(name, { uid, port: server.port })
    const find = async ({ chunk, without }: { chunk?: string; without?: string[] }): Promise<Peer[]> => {
      if (chunk === undefined) return []
      const options = { without: new Set(without), isUsable: (node: string) => reach.has(node) }
      const node = holders.assign({ content, chunk, node: name }, options)
      const found = node === undefined ? undefined : reach.get(node)
      if (node === undefined || !found) return []
      return [{ node, ...found, ip: '127.0.0.1', ...tickets.issue(found.uid, uid) }]
    }
    const peers = createPeers({ find, credentials: () => credentials, log: silentLog, silenceMs: 60_000 })
    const gone = new AbortController()
    const near = await peers.near(content, gone.signal)
    const syncing = new Syncing({ isLater: true })
    const open = () => Promise.reject(new Error('unused'))
    const source = fetchedContent({ store, near, fetches, syncing, open, read: send })
    // Each node begins with another chunk, as fills of disks do.
    const first = Math.floor(Math.random() * chunkCount)
    let came = 0
    try {
      await forEachParallel([...chunks.slice(first), ...chunks.slice(0, first)], 4, async ({ digest, storedBytes }) => {
        const bytes = await source.read(digest, storedBytes, gone.signal)
        if (!bytes.equals(await origin.read(digest, storedBytes))) throw new Error(`${name} has other bytes`)
        if (++came === 3 && dies(index)) gone.abort(new Error('killed'))
      })
    } catch (error) {
      if (!dies(index)) throw error
      reach.delete(name)
      await server.stop()
    } finally {
      stops.push(() => server.stop())
    }
  }
  const stops: (() => Promise<void>)[] = []
  await Promise.all(Array.from({ length: count }, (_, index) => run(index)))
  await Promise.all(stops.map((stop) => stop().catch(() => undefined)))
  await fs.rm(folder, { recursive: true, force: true })
  return sentBytes
}

describe('an image that many nodes fetch at once', () => {
  for (const count of [3, 20])
    it(`an image that ${count} nodes fetch at once is sent by its source once, and is right on all of them`, async () => {
      const sentBytes = await together(count)
      assert.ok(sentBytes <= 1.05 * imageBytes, `${sentBytes} bytes of an image of ${imageBytes}`)
    })

  it('an image that many nodes fetch at once arrives at the others when some are killed in the middle', async () => {
    const sentBytes = await together(8, (index) => index % 2 === 0)
    assert.ok(sentBytes <= 2 * imageBytes, `${sentBytes} bytes of an image of ${imageBytes}`)
  })
})
