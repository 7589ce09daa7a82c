// The end of a push, when the report does not reach the server, or it is no longer desired.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, it } from 'node:test'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { type BadRegistry, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import { silentLog } from '../../platform/log.ts'
import { createCaptures } from './captures.ts'
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

/** An agent that has packed what it is to push, and the server that it reports to. */
function pushing(server: { report?: () => Promise<void>; finish?: () => Promise<readonly string[]> }) {
  const kept = new Map<string, CaptureState>()
  const id = 'push-1'
  kept.set(id, {
    version: 1,
    id,
    kind: 'push',
    handle: { uid: 'vm', folder },
    architecture: 'arm64',
    image: { name: 'base' },
    reference: `127.0.0.1:${registry.port}/team/vm:v1`,
    phase: 'packed',
    content: small.digest,
  } as CaptureState)
  const captures = createCaptures({
    node: 'node',
    driver: { name: 'none' },
    images: { holdContent: async () => async () => undefined, isPackingAlone: async () => false },
    packer: {
      whole: async () => small.store,
      delivered: async () => undefined,
      dropped: async () => undefined,
      forget: async () => undefined,
    },
    states: {
      list: async () => [...kept.values()],
      write: async (state: CaptureState) => void kept.set(state.id, state),
      remove: async (gone: string) => void kept.delete(gone),
    },
    server: {
      login: async () => ({
        server: registry.server,
        allowInsecure: true,
        policy: { allowLoopback: true, allowPrivate: false },
      }),
      report: async () => undefined,
      finish: async () => [],
      ...server,
    },
    changed: () => undefined,
    log: silentLog,
    retry: { attempts: Number.POSITIVE_INFINITY, firstDelayMs: 1, maxDelayMs: 5, maxRetryAfterMs: 0 },
  } as unknown as Parameters<typeof createCaptures>[0])
  return { captures, kept }
}

it('a push moves the tag once, however often the server has to get the report', async () => {
  let told = 0
  const { captures, kept } = pushing({
    finish: async () => {
      told += 1
      // Meanwhile somebody else moves it.
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

it('a push does not move the tag when that is no longer desired', async () => {
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
