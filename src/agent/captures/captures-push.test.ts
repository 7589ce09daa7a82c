// Pushes whose report does not reach the server, or which are no longer desired at the end.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, it } from 'node:test'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { type BadRegistry, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { freePort } from '../../../test/support/tools/free-port.ts'
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import { hexOf } from '../../images/content/files.ts'
import { silentLog } from '../../platform/log.ts'
import { Captures } from './captures.ts'
import type { Packer } from './pack.ts'
import type { CaptureProgress } from './server.ts'
import type { CaptureState } from './states.ts'

let folder: string
let small: SmallImage
let registry: BadRegistry
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-captures-push-'))
  small = await makeSmallImage(folder, 3)
})
after(() => fs.rm(folder, { recursive: true }))
beforeEach(async () => {
  registry = await startBadRegistry()
})
afterEach(() => registry.close())

const tagPuts = () =>
  registry.seen.filter(({ method, path: place }) => method === 'PUT' && place.endsWith('/manifests/v1'))

/** Instead of three minutes. */
const timeoutMs = 2_500

/** An agent with a packed image to push, and the server that it reports to. */
function pushing(
  server: {
    report?: (id: string, progress: CaptureProgress & { problem?: string }) => Promise<void>
    finish?: () => Promise<readonly string[]>
  },
  {
    port = registry.port,
    phase = 'packed',
    isFull = false,
  }: { port?: number; phase?: 'packed' | 'frozen'; isFull?: boolean } = {},
) {
  const kept = new Map<string, CaptureState>()
  /** The ends of the packed images. */
  const ends: string[] = []
  const id = 'push-1'
  kept.set(id, {
    version: 1,
    id,
    kind: 'push',
    handle: { uid: 'vm', folder },
    architecture: 'arm64',
    image: { name: 'base' },
    reference: `127.0.0.1:${port}/team/vm:v1`,
    phase,
    ...(phase === 'packed' ? { content: small.digest } : { capture: { base: 'simulated:base' } }),
  } as CaptureState)
  const captures = new Captures({
    node: 'node',
    driver: { name: 'none' },
    images: {
      holdContent: async () => async () => undefined,
      isPackingAlone: async () => false,
      ensure: async () => ({ digest: 'none' }),
    },
    packer: {
      storeWith: async () => small.store,
      async pack(_job: unknown, { wrapStore: through, progress }: Parameters<Packer['pack']>[1]) {
        await through?.(small.store).put(Buffer.from('a chunk'))
        progress(1, 7)
        return small.digest
      },
      delivered: async () => void ends.push('delivered'),
      discard: async () => void ends.push('dropped'),
      forget: async () => undefined,
    },
    content: async () => ({ store: { has: async (digest: string) => hexOf(digest) === '' } }),
    states: {
      list: async () => [...kept.values()],
      async write(state: CaptureState) {
        if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
        kept.set(state.id, state)
      },
      remove: async (gone: string) => void kept.delete(gone),
    },
    server: {
      login: async () => ({
        server: `http://127.0.0.1:${port}`,
        allowInsecure: true,
        policy: { allowLoopback: true, allowPrivate: false },
      }),
      report: async () => undefined,
      finish: async () => [],
      ...server,
    },
    changed: () => undefined,
    log: silentLog,
    retry: { attempts: Number.POSITIVE_INFINITY, firstDelayMs: 1, maxDelayMs: 5 },
    registryRetry: {
      attempts: Infinity,
      firstDelayMs: 100,
      maxDelayMs: 1_000,
      withinMs: timeoutMs,
    },
  } as unknown as ConstructorParameters<typeof Captures>[0])
  return { captures, kept, ends }
}

it('a push moves the tag once, however often the report to the server is repeated', async () => {
  let told = 0
  const { captures, kept } = pushing({
    finish: async () => {
      told += 1
      // Another client moves it in the meantime.
      registry.manifests.set('v1', { type: 'text/plain', bytes: Buffer.from('newer') })
      if (told < 5) throw new ConnectionError('lost', 'the server', 'the connection was lost', 'try again')
      return []
    },
  })
  await captures.adopt()
  captures.begin()
  await eventually(async () => assert.equal(kept.size, 0))
  assert.deepEqual([told, tagPuts().length], [5, 1])
  assert.equal(registry.manifests.get('v1')?.bytes.toString(), 'newer')
  await captures.stop()
})

it('a push does not move the tag if it is no longer desired', async () => {
  const { captures, kept } = pushing({
    report: async () => {
      throw new ApiError('NotFound', 'it was cancelled')
    },
  })
  await captures.adopt()
  captures.begin()
  await eventually(async () => assert.equal(kept.size, 0))
  assert.deepEqual([tagPuts().length, registry.manifests.size], [0, 0])
  await captures.stop()
})

it('a push whose image is in the registry succeeds although the disk of its node is full', async () => {
  const problems: unknown[] = []
  let finished = 0
  const server = {
    report: async (_: string, { problem }: { problem?: string }) => void (problem && problems.push(problem)),
    finish: async () => {
      finished += 1
      return []
    },
  }
  const { captures, kept } = pushing(server, { isFull: true })
  await captures.adopt()
  captures.begin()
  await eventually(async () => assert.equal(kept.size, 0))
  assert.deepEqual([tagPuts().length, finished, problems], [1, 1, []])
  await captures.stop()
})

it('a push that the desired state no longer names while the server completes it is delivered, not dropped', async () => {
  const { captures, kept, ends } = pushing({
    finish: async () => {
      // The server removes it from the desired state first, and the stream is faster than the response.
      captures.setDesired({ uid: 'vm', folder } as Parameters<typeof captures.setDesired>[0], [])
      return []
    },
  })
  await captures.adopt()
  captures.begin()
  await eventually(async () => assert.equal(kept.size, 0))
  assert.deepEqual(ends, ['delivered'])
  await captures.stop()
})

for (const phase of ['frozen', 'packed'] as const)
  it(`a push of a ${phase} image to a registry that does not respond reports that after the first failure, and fails in time`, async () => {
    const port = await freePort()
    const reports: (CaptureProgress & { problem?: string; atMs: number })[] = []
    const beganMs = performance.now()
    const report = async (_: string, progress: CaptureProgress & { problem?: string }) =>
      void reports.push({ ...progress, atMs: performance.now() - beganMs })
    const { captures, kept } = pushing({ report }, { port, phase })
    await captures.adopt()
    captures.begin()
    await eventually(async () => assert.equal(kept.size, 0), 20_000)
    const waits = reports.filter(({ waiting }) => waiting)
    const refused = `http://127.0.0.1:${port}/v2/: connection refused (ECONNREFUSED)`
    // Reported while it still retries.
    assert.ok(waits.length > 1, JSON.stringify(reports))
    for (const { waiting } of waits) assert.equal(waiting?.problem, refused)
    // The limit counts once, not separately for sending during and after packing.
    const { problem = '', atMs = 0 } = reports.at(-1) ?? {}
    assert.equal(problem, `Could not be pushed from node node: ${refused}. Try again when the registry answers`)
    const triedMs = atMs - (waits[0]?.atMs ?? Number.NaN)
    assert.ok(atMs >= timeoutMs && triedMs < 2 * timeoutMs, `${triedMs} of ${atMs} ms`)
    await captures.stop()
  })

it('a push reports progress before the registry has responded', async () => {
  const hung = Promise.withResolvers<boolean>()
  registry.bend = () => hung.promise
  const reports: CaptureProgress[] = []
  const report = async (_: string, progress: CaptureProgress) => void reports.push(progress)
  const { captures, kept } = pushing({ report }, { phase: 'frozen' })
  await captures.adopt()
  captures.begin()
  await eventually(() => assert.equal(registry.seen.length, 1))
  await eventually(() => assert.deepEqual(reports, [{ percent: 0, bytes: 0, phase: 'packing, 0 %' }]))
  hung.resolve(false)
  await eventually(() => assert.equal(kept.size, 0))
  await captures.stop()
})

it('a push continues when the registry is back, and no longer reports that it waits', async () => {
  const port = await freePort()
  const reports: CaptureProgress[] = []
  const { captures, kept } = pushing({ report: async (_, progress) => void reports.push(progress) }, { port })
  await captures.adopt()
  captures.begin()
  await eventually(async () => assert.ok(reports.some(({ waiting }) => waiting)))
  const back = await startBadRegistry({ port })
  await eventually(async () => assert.equal(kept.size, 0), 20_000)
  assert.ok(back.manifests.has('v1'))
  assert.equal(reports.at(-1)?.waiting, undefined)
  await captures.stop()
  await back.close()
})
