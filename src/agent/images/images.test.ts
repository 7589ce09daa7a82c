// Images are built once for all callers, and builds end with their last caller.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { scriptedDriver } from '../../../test/support/stand-ins/scripted-driver.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { BaseImage } from '../../drivers/driver.ts'
import { silentLog } from '../../platform/log.ts'
import { Pins } from './cache-pins.ts'
import { type Images, openImages, pretendImages } from './images.ts'
import type { Recipe } from './recipes.ts'

const image: BaseImage = {
  name: 'built',
  digest: 'sha256:1',
  disk: '/images/disk.raw',
  format: 'raw',
  virtualSizeBytes: 2 ** 30,
  boot: { kind: 'firmware' },
}
const wanted = { name: 'tiny', recipe: 'tiny' }
const never = new AbortController().signal
const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-images-'))
after(() => fs.rm(root, { recursive: true, force: true }))
let folders = 0
const noBlobs = async () => assert.fail('nothing is fetched')

/** A recipe whose builds the test completes. */
function kitchen() {
  const started = Promise.withResolvers<Parameters<Recipe['make']>[1]>()
  const finished = Promise.withResolvers<void>()
  finished.promise.catch(() => undefined)
  let builds = 0
  let isThere = false
  const recipe: Recipe = {
    find: async () => (isThere ? image : undefined),
    async make(_folder, options) {
      builds++
      started.resolve(options)
      options.signal.addEventListener('abort', () => finished.reject(options.signal.reason))
      await finished.promise
      isThere = true
    },
  }
  const folder = path.join(root, String(++folders))
  const open = (added = () => {}) =>
    openImages({ folder, recipes: { tiny: recipe }, openBlob: noBlobs, changed: added, log: silentLog })
  return { recipe, started: started.promise, finished, open, builds: () => builds }
}

it('a simulated image has the size that the server knows, so that a commit keeps it', async () => {
  const sizeOf = async (more: object) =>
    (await pretendImages().ensure({ name: 'old', ...more }, { signal: never, progress: () => undefined }))
      .virtualSizeBytes
  assert.equal(await sizeOf({ sizeBytes: 22 * 2 ** 30 }), 22 * 2 ** 30)
  assert.equal(await sizeOf({}), 10 * 2 ** 30)
})

describe('pinned images', () => {
  it('pinned images that cannot be fetched for now do not delay others, and report the reason', async () => {
    const ready = Promise.withResolvers<void>()
    const ensure: Images['ensure'] = async ({ name }, { signal, onWait }) => {
      if (name === 'third') return image
      const left = once(signal, 'abort')
      onWait?.('a server has to come back')
      await left
      throw signal.reason
    }
    const retry = { attempts: Infinity, firstDelayMs: 600_000, maxDelayMs: 600_000 }
    const pins = new Pins({
      images: { ...pretendImages(), ensure },
      changed: () => pins.report().some(({ state }) => state === 'Ready') && ready.resolve(),
      log: silentLog,
      retry,
    })
    pins.setDesired({ images: ['first', 'second', 'third'].map((name) => ({ name, content: name })), drops: [] })
    await ready.promise
    const problem = 'image first could not be fetched: a server has to come back'
    const [first] = pins.report()
    assert.deepEqual([first?.state, first?.problem], ['Failed', problem])
    await pins.stop()
  })

  it('pinned images on a full disk are fetched when dropped copies have freed space', async () => {
    const copies = new Set(['large'])
    const kept: string[][] = []
    const ready = Promise.withResolvers<void>()
    const pins = new Pins({
      images: {
        ...pretendImages(),
        async pin(pinned) {
          if (copies.size > 0) throw new Error('ENOSPC: no space left on device')
          kept.push(pinned.map(({ name }) => name))
        },
        drop: async (key) => void copies.delete(key),
      },
      changed: () => pins.report().some(({ state }) => state === 'Ready') && ready.resolve(),
      log: silentLog,
      retry: { attempts: Infinity, firstDelayMs: 1, maxDelayMs: 1 },
    })
    pins.setDesired({ images: [{ name: 'small', content: 'small' }], drops: ['large'] })
    await ready.promise
    assert.deepEqual([[...copies], kept], [[], [['small']]])
    await pins.stop()
  })

  it('pinned images with one digest in two registries are both fetched', async () => {
    const wanted = ['a', 'b'].map((host) => `${host}.example.com/image@sha256:${'0'.repeat(64)}`)
    const ready = Promise.withResolvers<void>()
    const fetched: string[] = []
    const ensure: Images['ensure'] = async ({ reference = '' }) => {
      fetched.push(reference)
      return image
    }
    const changed = (): void => {
      if (pins.report().every(({ state }) => state === 'Ready')) ready.resolve()
    }
    const pins: Pins = new Pins({ images: { ...pretendImages(), ensure }, changed, log: silentLog })
    pins.setDesired({ images: wanted.map((reference) => ({ name: reference, reference })), drops: [] })
    await ready.promise
    await pins.stop()
    assert.deepEqual(fetched, wanted)
  })

  it('pinned images are written in order, so that the newest are kept', async () => {
    const [old, added] = ['a', 'b'].map((each) => `${each}.example.com/image@sha256:${each.repeat(64)}`)
    const [oldWrite, ready] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let kept: string[] = []
    let writes = 0
    const pin: Images['pin'] = async (images) => {
      // The second write is that after the fetch of the old image.
      if (++writes === 2) await oldWrite.promise
      kept = images.map(({ name }) => name)
    }
    const ensure: Images['ensure'] = async ({ name }, { signal }) => {
      if (name !== old) await once(signal, 'abort')
      signal.throwIfAborted()
      return image
    }
    const changed = (): void => {
      if (pins.report().some(({ state }) => state === 'Ready')) ready.resolve()
    }
    const pins: Pins = new Pins({ images: { ...pretendImages(), pin, ensure }, changed, log: silentLog })
    const set = (references: (string | undefined)[]): void =>
      pins.setDesired({ images: references.map((reference = '') => ({ name: reference, reference })), drops: [] })
    set([old])
    await eventually(() => assert.equal(writes, 2))
    set([old, added])
    await new Promise(setImmediate)
    oldWrite.resolve()
    await ready.promise
    await eventually(() => assert.deepEqual(kept, [old, added]))
    await pins.stop()
    assert.deepEqual(kept, [old, added])
  })

  it('pinned images that cannot be written delay neither the next desired state nor the end of the agent', async () => {
    const ready = Promise.withResolvers<void>()
    const pin: Images['pin'] = async (pinned) => {
      if (pinned.some(({ name }) => name === 'first')) throw new Error('ENOSPC: no space left on device')
    }
    const pins = new Pins({
      images: { ...pretendImages(), pin },
      changed: () => pins.report().some(({ state }) => state === 'Ready') && ready.resolve(),
      log: silentLog,
      retry: { attempts: Infinity, firstDelayMs: 600_000, maxDelayMs: 600_000 },
    })
    const [first, second] = ['first', 'second'].map((name) => ({ images: [{ name, content: name }], drops: [] }))
    assert.ok(first && second)
    pins.setDesired(first)
    await new Promise(setImmediate)
    pins.setDesired(second)
    await ready.promise
    pins.setDesired(first)
    await new Promise(setImmediate)
    await pins.stop()
  })
})

describe('images of a node', () => {
  it('images of a node are built once for all callers, also those of other agents in the process', async () => {
    const { started, finished, open, builds } = kitchen()
    const [one, other] = [await open(), await open()]
    const told: string[] = []
    const options = { signal: never, progress: (phase: string) => void told.push(phase) }
    const all = [one.ensure(wanted, options), one.ensure(wanted, options), other.ensure(wanted, options)]
    ;(await started).progress('unpacking')
    finished.resolve()
    for (const made of await Promise.all(all)) assert.deepEqual(made, { ...image, name: 'tiny' })
    assert.equal(builds(), 1)
    assert.ok(told.includes('building the image') && told.includes('building the image: unpacking'))
    assert.deepEqual([one.names(), other.names()], [['tiny'], ['tiny']])
    await one.ensure(wanted, options)
    assert.equal(builds(), 1)
  })

  it('images of a node are built as long as a caller waits for them', async () => {
    const { started, open } = kitchen()
    const images = await open()
    const [first, second] = [new AbortController(), new AbortController()]
    const bothWait = Promise.withResolvers<void>()
    let waiting = 0
    const progress = () => void (++waiting === 2 && bothWait.resolve())
    const options = (signal: AbortSignal) => ({ signal, progress })
    const left = assert.rejects(images.ensure(wanted, options(first.signal)), { name: 'AbortError' })
    const stayed = assert.rejects(images.ensure(wanted, options(second.signal)), { name: 'AbortError' })
    const { signal } = await started
    await bothWait.promise
    first.abort()
    await left
    assert.equal(signal.aborted, false)
    second.abort()
    await stayed
    assert.equal(signal.aborted, true)
  })

  it('images of a node that cannot be built are refused with the reason', async () => {
    const { finished, open } = kitchen()
    const images = await open()
    const options = { signal: never, progress: () => undefined }
    finished.reject(new Error('no such package'))
    await assert.rejects(images.ensure(wanted, options), /image tiny could not be built: no such package/)
    await assert.rejects(images.ensure({ name: 'x' }, options), /image x is not on this node/)
    await assert.rejects(images.ensure({ name: 'x', recipe: 'constructor' }, options), /no recipe constructor/)
  })

  it('images of a node are in the report of the node as soon as they exist', async () => {
    const { recipe, finished } = kitchen()
    finished.resolve()
    await using rig = await AgentRig.make()
    const agent = await rig.launch({ driver: scriptedDriver(rig.world, 'scripted'), recipes: { tiny: recipe } })
    await agent.ready
    assert.deepEqual(rig.server.nodes.at(-1)?.images, [])
    const told = rig.server.nextNode(({ images }) => images.includes('tiny'))
    const report = await rig.server.fulfilled(rig.server.want({ uid: 'a', image: wanted }))
    assert.deepEqual([report.power, report.diskGb], ['running', 1])
    await told
  })

  it('images of a node that are being built do not delay the deletion of a VM', async () => {
    const { recipe, started } = kitchen()
    await using rig = await AgentRig.make()
    const agent = await rig.launch({ driver: scriptedDriver(rig.world, 'scripted'), recipes: { tiny: recipe } })
    await agent.ready
    rig.server.want({ uid: 'a', image: wanted })
    await started
    const report = await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'deleted' }))
    assert.equal(report.power, 'removed')
  })
})
