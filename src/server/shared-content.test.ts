// Content on several servers: what one lacks it takes from another, once for all who ask; and its collector is not held
// up by images that are elsewhere.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { present } from '../bin/sharing.ts'
import { collect } from '../images/collect.ts'
import type { ContentStore } from '../images/content.ts'
import { formatVersion } from '../images/format.ts'
import { openStore } from '../images/store.ts'
import { putManifest } from '../images/stored-manifests.ts'
import { silentLog } from '../platform/log.ts'
import type { ServerRecord } from '../store/server-records.ts'
import { type ServerCalls, ServerUnreachable } from './server-calls.ts'
import { shareContent } from './shared-content.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-shared-'))
})
after(() => fs.rm(folder, { recursive: true, force: true }))

let count = 0
const newStore = (): Promise<ContentStore> => openStore(path.join(folder, String(++count)))
const serverOf = (id: string): ServerRecord => ({
  id,
  run: id,
  internalUrl: `https://${id}`,
  apiUrl: `https://${id}`,
  version: '',
  startedAt: '',
  leaseMs: 1,
  beat: 0,
})

/** One server beside others, which are their stores; `null` does not answer. */
async function among(others: Readonly<Record<string, ContentStore | null>>, change: Partial<ContentStore> = {}) {
  const asked: string[] = []
  const storeAt = (url: string): ContentStore => {
    const store = others[new URL(url).host]
    if (!store) throw new ServerUnreachable(`${url} cannot be reached`)
    return store
  }
  const calls = {
    async call({ internalUrl }: ServerRecord, _: unknown, { digests }: { digests: string[] }) {
      asked.push(`${digests.length} of ${new URL(internalUrl).host}`)
      const store = storeAt(internalUrl)
      const sizes = await Promise.all(digests.map(async (digest) => ({ digest, bytes: await store.size(digest) })))
      return { found: sizes.filter(({ bytes }) => bytes !== undefined) }
    },
    open: async (url: string, _method: string, where: string) =>
      Readable.from(storeAt(url).open(where.split('/').at(-1) ?? '')),
  } as unknown as ServerCalls
  const own = { ...(await newStore()), ...change }
  const shared = shareContent({
    own,
    others: () => Object.keys(others).map(serverOf),
    away: () => away,
    calls,
    log: silentLog,
  })
  return { own, shared, asked }
}

describe('content of several servers', () => {
  it('is taken from the one that has it, and is here from then on', async () => {
    const far = await newStore()
    const { digest } = await far.put(Buffer.from('a chunk'))
    const { own, shared, asked } = await among({ down: null, far })
    const [read, size, isThere] = await Promise.all([
      shared.read(digest, 100),
      shared.size(digest),
      shared.touch(digest),
    ])
    assert.deepEqual([String(read), size, isThere], ['a chunk', 7, true])
    assert.deepEqual(asked, ['1 of down', '1 of far'])
    assert.equal(await own.size(digest), 7)
    for await (const piece of shared.open(digest, { start: 2, end: 7 })) assert.equal(String(piece), 'chunk')
    assert.equal(asked.length, 2)
  })

  it('that nobody has is told as such, and many questions go out as one', async () => {
    // All in one turn: how many a disk takes is its own matter.
    const { shared, asked } = await among({ far: await newStore() }, { touch: async () => false })
    const digests = Array.from({ length: 50 }, (_, n) => `sha256:${String(n).padStart(64, '0')}`)
    const there = await Promise.all(digests.map((digest) => shared.touch(digest)))
    assert.ok(there.every((each) => !each))
    assert.deepEqual(asked, ['50 of far'])
    await assert.rejects(shared.read(digests[0] ?? '', 100), /there is no content/)
  })

  it('is collected here, though an image of the records is on no server that answers', async () => {
    const { own, shared } = await among({ down: null })
    const { digest: stray } = await own.put(Buffer.from('stray'))
    const manifest = await putManifest(own, {
      formatVersion,
      architecture: 'amd64',
      virtualSizeBytes: 512,
      boot: { kind: 'firmware' },
      layers: [],
    })
    const missing = `sha256:${'1'.repeat(64)}`
    const now = (): number => Date.now() + 1_000
    await assert.rejects(
      collect(own, () => [missing], { graceMs: 0, now }),
      /there is no content/,
    )
    await collect(own, () => present(shared, [manifest, missing]), { graceMs: 0, now })
    assert.equal(await own.size(stray), undefined)
    assert.ok(await own.size(manifest))
  })
})
