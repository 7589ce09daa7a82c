// Content on several servers: missing content is fetched from another server, single-flight. Content that may be on a server
// that does not respond does not count as lost, and does not block the collector.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { present, replicasIn } from '../../control-plane/sharing.ts'
import { forgetLeftovers } from '../../controllers/forget-leftovers.ts'
import { replicateImages } from '../../controllers/replicate-images.ts'
import { collect } from '../../images/collect.ts'
import { ContentAwayError, type ContentStore } from '../../images/content/content.ts'
import { openContentFolder } from '../../images/content/store.ts'
import { formatVersion } from '../../images/format/format.ts'
import { putManifest } from '../../images/pack/stored-manifests.ts'
import { forgetServer } from '../../operator/forget-server.ts'
import { silentLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { refusalOf } from '../http/refusals.ts'
import { openImageContents } from '../images/contents.ts'
import { type ServerCalls, ServerUnreachable } from './server-calls.ts'
import { Servers } from './servers.ts'
import { shareContent } from './shared-content.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-shared-'))
})
after(() => fs.rm(folder, { recursive: true, force: true }))

const never = new AbortController().signal
const subscribe = () => () => undefined
let count = 0
const newStore = (): Promise<ContentStore> => openContentFolder(path.join(folder, String(++count)))
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

type Others = Record<string, ContentStore | null>

/** A stream that breaks off. */
async function* newEnd(): AsyncGenerator<Buffer> {
  yield Buffer.from('a ')
  throw new Error('the wire is cut')
}

/** A server with others, given by their stores. `null` does not respond; servers that are away are not asked. */
async function among(others: Others, change: Partial<ContentStore> = {}, away: string[] = []) {
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
    open: async (url: string, where: string) => Readable.from(storeAt(url).open(where.split('/').at(-1) ?? '')),
  } as unknown as ServerCalls
  const own = { ...(await newStore()), ...change }
  const shared = shareContent({
    own,
    others: () => Object.keys(others).map(serverOf),
    away: () => away.map(serverOf),
    calls,
    log: silentLog,
  })
  return { own, shared, asked }
}

describe('content of several servers', () => {
  it('content of several servers is fetched from a server that has it, and stored', async () => {
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

  it('content of several servers that no server has is reported as missing, and queries are batched', async () => {
    const { shared, asked } = await among({ far: await newStore() }, { touch: async () => false })
    const digests = Array.from({ length: 50 }, (_, n) => `sha256:${String(n).padStart(64, '0')}`)
    const there = await Promise.all(digests.map((digest) => shared.touch(digest)))
    assert.ok(there.every((each) => !each))
    assert.deepEqual(asked, ['50 of far'])
    await assert.rejects(shared.read(digests[0] ?? '', 100), /No content/)
  })

  it('content of several servers that may be on an unreachable server is not lost: the error names that server', async () => {
    const missing = `sha256:${'2'.repeat(64)}`
    const far = await newStore()
    const cases: [Others, string[], RegExp][] = [
      [{ down: null, far }, [], /the server down may have it and cannot be reached; start it again/],
      [{ far }, ['gone:8443'], /the server gone:8443 may have it/],
      [{}, ['gone:8443'], /the server gone:8443 may have it/],
      [{ down: null }, ['gone'], /one of the servers gone, down may have it .* start them again/],
      [{}, [...'abcdefg'], /one of the servers a, b, c, d, e, f, g may/],
    ]
    for (const [others, away, message] of cases) {
      const { shared } = await among(others, {}, away)
      const calls = {
        read: () => shared.read(missing, 100),
        size: () => shared.size(missing),
        open: () => shared.open(missing).next(),
        hold: () => openImageContents(shared).hold(missing),
        requireAll: async () => shared.requireAll?.([missing]),
      }
      for (const [name, call] of Object.entries(calls)) {
        const error = await call().then(() => undefined, refusalOf)
        assert.deepEqual([error?.code, error?.options.retryAfterSeconds], [503, 5], name)
        assert.match(error?.message ?? '', message)
      }
      // A server that has the content can deliver it.
      assert.equal(await shared.touch(missing), false)
      assert.equal(await replicasIn(shared, { subscribe }).bring(missing, never), false)
    }
    const { shared } = await among({ far })
    assert.equal(await shared.size(missing), undefined)
    assert.equal(await openImageContents(shared).hold(missing), false)
    const lost = await shared.requireAll?.([missing]).then(() => undefined, refusalOf)
    assert.deepEqual([lost?.code, lost?.options.hint], [409, 'Delete the image and upload it again'])
  })

  it('content of several servers is checked without fetching it, in one query', async () => {
    const far = await newStore()
    const digests = await Promise.all([1, 2, 3].map(async (n) => (await far.put(Buffer.from(`chunk ${n}`))).digest))
    const { own, shared, asked } = await among({ far }, { size: async () => undefined })
    await shared.requireAll?.(digests)
    assert.deepEqual(asked, ['3 of far'])
    assert.deepEqual(await Promise.all(digests.map((digest) => own.has(digest))), [false, false, false])
  })

  it('content of several servers can be fetched again after a transfer broke off', async () => {
    const far = await newStore()
    const { digest } = await far.put(Buffer.from('a chunk'))
    const others: Others = { far: { ...far, open: () => newEnd() } }
    const { shared, own } = await among(others)
    await assert.rejects(shared.size(digest), (error) => {
      assert.ok(error instanceof ContentAwayError)
      return /could not be taken from far, which has it: the wire is cut/.test(error.message)
    })
    others.far = far
    assert.equal(await shared.size(digest), 7)
    assert.equal(await own.size(digest), 7)
  })

  it('content of several servers is collected although an image is on no reachable server', async () => {
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
      /No content/,
    )
    await collect(own, () => present(shared, [manifest, missing]), { graceMs: 0, now })
    assert.equal(await own.size(stray), undefined)
    assert.ok(await own.size(manifest))
  })
})

describe('known servers', () => {
  const stores: AsyncDisposable[] = []
  after(async () => {
    for (const each of stores) await each[Symbol.asyncDispose]()
  })
  const clock = { nowMs: Date.parse('2026-11-16T08:00:00Z'), now: () => new Date(clock.nowMs) }
  async function records(store = openMemory()) {
    const collections = await openCollections(store)
    stores.push(collections, { [Symbol.asyncDispose]: () => store.close() })
    return collections
  }

  const knownIn = ({ knownServers }: Collections): string[] => knownServers.list().map(({ value }) => value.id)

  it('known servers count as away until they return, are replaced, or a month has passed', async () => {
    const collections = await records()
    const start = async (id: string, host: string): Promise<Servers> => {
      const servers = new Servers({
        collections,
        self: { id, run: id, version: '' },
        clock,
        log: silentLog,
        nowMs: () => 0,
      })
      const internalUrl = `https://${host}`
      await servers.start({ internalUrl, apiUrl: internalUrl }, async () => undefined)
      return servers
    }
    const b = await start('b', 'two')
    const away = (): string[] => b.away().map(({ internalUrl }) => new URL(internalUrl).host)
    const stop = async (server: Servers): Promise<void> => {
      await server.stop()
      assert.equal(collections.servers.get('', server.id), undefined)
    }
    const a = await start('a', 'one')
    assert.deepEqual(away(), [])
    await stop(a)
    assert.deepEqual(away(), ['one'])
    const again = await start('a', 'elsewhere')
    assert.deepEqual(away(), [])
    await stop(again)
    assert.deepEqual(away(), ['elsewhere'])
    // Its folder was deleted.
    const anew = await start('c', 'elsewhere')
    assert.deepEqual(away(), [])

    await stop(anew)
    const seen = async (): Promise<string | undefined> => {
      const loop = forgetLeftovers({ collections, clock, log: silentLog } as never, async () => undefined)
      await loop.stop()
      return collections.knownServers.get('', 'c')?.value.goneAt
    }
    assert.equal(await seen(), '2026-11-16T08:00:00Z')
    clock.nowMs += 30 * 24 * 3_600_000
    assert.equal(await seen(), '2026-11-16T08:00:00Z')
    assert.deepEqual(away(), ['elsewhere'])
    clock.nowMs += 1_000
    assert.equal(await seen(), undefined)
    assert.deepEqual(away(), [])
    assert.ok(collections.knownServers.get('', 'b'), 'one that is there is never forgotten')
    await stop(b)
  })

  it('known servers that are forgotten are not waited for, and live ones cannot be forgotten', async () => {
    const store = openMemory()
    const collections = await records(store)
    const { servers, knownServers } = collections
    // One server was stopped. One was killed and replaced by another, whose lease outlasts this test.
    for (const [id, host] of Object.entries({ stopped: 'one:8443', killed: 'two:8443', runs: 'two:8443' }))
      await knownServers.create('', id, { id, internalUrl: `https://${host}` })
    await servers.create('', 'killed', serverOf('killed'))
    let running = await servers.create('', 'runs', { ...serverOf('runs'), leaseMs: 600_000 })
    const whileItRuns = async (work: Promise<unknown>): Promise<void> => {
      let isOver = false
      const ended = work.finally(() => {
        isOver = true
      })
      ended.catch(() => undefined)
      while (!isOver) {
        running = await servers.update(running, { ...running.value, beat: running.value.beat + 1 })
        await setTimeout(5)
      }
      await ended
    }
    const problem = async (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => 'none',
        (error: Error) => error.message,
      )

    assert.match(
      await problem(forgetServer(store, 'three:8443')),
      /^Server three:8443 not found; known servers: two:8443, one:8443$/,
    )
    await forgetServer(store, 'one:8443')
    await whileItRuns(forgetServer(store, 'https://two:8443'))
    assert.match(await problem(whileItRuns(forgetServer(store, 'two:8443'))), /two:8443 is alive.*Stop it for good/)
    await eventually(() => assert.deepEqual(knownIn(collections), ['runs']))
  })

  it('known servers are removed once another server has their address, even if their lease had not expired', async () => {
    const collections = await records()
    const { servers, knownServers } = collections
    const internalUrl = 'https://one:8443'
    await knownServers.create('', 'killed', { id: 'killed', internalUrl })
    const killed = await servers.create('', 'killed', serverOf('killed'))
    const self = { id: 'own', run: 'own', version: '' }
    const own = new Servers({ collections, self, clock, log: silentLog, leaseMs: 20, nowMs: () => 0 })
    await own.start({ internalUrl, apiUrl: internalUrl }, async () => undefined)
    assert.deepEqual(knownIn(collections), ['killed', 'own'])
    await servers.delete(killed)
    await eventually(() => assert.deepEqual(knownIn(collections), ['own']))
    await own.stop()
  })

  it('known servers trigger replication: the content of a new image is fetched at once, and again with each new server', async () => {
    const collections = await records()
    /** Each run lists all images once. */
    const list = collections.images.list.bind(collections.images)
    let looked = Promise.withResolvers<void>()
    collections.images.list = (...asked) => {
      setImmediate(looked.resolve)
      return list(...asked)
    }
    let brought = Promise.withResolvers<string>()
    let serversChanged = (): void => assert.fail('nobody listens')
    const loop = replicateImages({ collections, clock, log: silentLog } as never, {
      bring: async (digest) => {
        brought.resolve(digest)
        return false
      },
      subscribe(listener) {
        serversChanged = listener
        return () => undefined
      },
    })
    await looked.promise
    looked = Promise.withResolvers()
    await collections.images.create('', 'new', { name: 'new', content: 'sha256:new' } as never)
    assert.equal(await brought.promise, 'sha256:new')
    await looked.promise
    brought = Promise.withResolvers()
    serversChanged()
    assert.equal(await brought.promise, 'sha256:new')
    await loop.stop()
  })
})
