// Images from registries on a node: pulled once for all callers, continued after an interruption, never made from wrong bytes, known
// after a restart, and held by the VMs that use them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { makeSmallImage, type SmallImage } from '../../../test/support/rigs/small-image.ts'
import { type BadRegistry, reply, startBadRegistry } from '../../../test/support/stand-ins/bad-registry.ts'
import { putTart } from '../../../test/support/stand-ins/tart.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import { ConnectionError } from '../../client/transport.ts'
import { imageSource } from '../../oci/artifact/image-target.ts'
import { copy } from '../../oci/copy.ts'
import { openRegistry } from '../../oci/registry/registry.ts'
import { silentLog } from '../../platform/log.ts'
import { Pins } from './cache-pins.ts'
import type { Holders } from './holders.ts'
import { openImages } from './images.ts'
import type { AskLogin } from './registry-image.ts'

const mib = 2 ** 20
const never = new AbortController().signal
let root: string
let small: SmallImage
let registry: BadRegistry

before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-pulled-'))
  small = await makeSmallImage(path.join(root, 'image'), 40)
})
after(() => fs.rm(root, { recursive: true, force: true }))
beforeEach(async () => {
  registry = await startBadRegistry()
})
afterEach(() => registry.close())

const login = (): RegistryLogin => ({
  server: registry.server,
  allowInsecure: true,
  policy: { allowPrivate: false, allowLoopback: true },
})
const host = (): string => new URL(registry.server).host
async function publish(): Promise<string> {
  const opened = openRegistry(login())
  const target = opened.repository('team/image')
  const { digest } = await copy(
    { target: imageSource(small.store), reference: small.digest },
    { target, reference: 'v1' },
  )
  opened.close()
  registry.seen.length = 0
  return `${host()}/team/image@${digest}`
}
async function node(ask: AskLogin = async () => login(), kept?: string, holders?: Holders) {
  const folder = kept ?? (await fs.mkdtemp(path.join(root, 'node-')))
  const asked: string[] = []
  const images = await openImages({
    folder,
    recipes: {},
    openBlob: () => Promise.reject(new Error('the server has nothing of it')),
    askLogin: (vm, signal) => {
      asked.push(vm)
      return ask(vm, signal)
    },
    changed: () => undefined,
    ...(holders && { holders }),
    log: silentLog,
  })
  return { folder, images, asked }
}
const options = (signal = never, told: string[] = []) => ({
  signal,
  vm: 'uid-1',
  progress: (phase: string, percent?: number) => void told.push(`${phase} ${percent ?? ''}`),
})
const chunks = (): string[] => small.manifest.layers.flatMap((layer) => layer.chunks.map(({ digest }) => digest))
const chunksRead = (): string[] =>
  registry.seen.flatMap(({ method, path: at }) => {
    const digest = at.slice(at.lastIndexOf('/') + 1)
    return method === 'GET' && chunks().includes(digest) ? [digest] : []
  })
const hasDisk = async (file: string): Promise<boolean> => (await fs.readFile(file)).equals(small.disk)
const wanted = (reference: string) => ({ name: `${host()}/team/image:v1`, reference })

describe('image of a registry', () => {
  it('an image of a registry is pulled once for all callers, and known after a restart without requests', async () => {
    const reference = await publish()
    const { images, folder, asked } = await node()
    const told: string[] = []
    const all = await Promise.all([1, 2, 3].map(() => images.ensure(wanted(reference), options(never, told))))
    for (const { disk, digest } of all) assert.deepEqual([await hasDisk(disk), digest], [true, small.digest])
    assert.deepEqual(chunksRead().toSorted(), chunks().toSorted())
    assert.deepEqual(asked, ['uid-1', 'uid-1'])
    assert.match(told.at(-1) ?? '', /^pulling(, .* left)? 100$/)
    assert.deepEqual(images.names(), [reference])
    const again = await node(undefined, folder)
    await again.images.ensure(wanted(reference), options())
    assert.deepEqual([again.asked, again.images.names()], [[], [reference]])
    const names = [`${host()}/team/image:v1`]
    assert.deepEqual(again.images.copies()[0]?.pulled, { reference, names, sizeBytes: small.disk.length })
  })

  it('an image of a registry is cached without a VM, kept, and reported by every name it was requested by', async () => {
    const reference = await publish()
    const { images, folder, asked } = await node()
    const seen = new Set<string>()
    const changed = (): void => {
      for (const { key, state } of pins.report()) seen.add(`${key} ${state}`)
    }
    const pins: Pins = new Pins({ images, changed, log: silentLog })
    pins.setDesired({ images: [wanted(reference)], drops: [] })
    await eventually(() => assert.ok(seen.has(`${small.digest} Ready`), [...seen].join()))
    assert.ok(seen.has(`pull:${reference} Fetching`))
    assert.deepEqual(asked, [reference, reference])
    await images.ensure({ ...wanted(reference), name: `${host()}/team/image:other` }, options())
    const [report, ...others] = pins.report()
    const names = ['v1', 'other'].map((tag) => `${host()}/team/image:${tag}`)
    const pulled = { reference, names, sizeBytes: small.disk.length }
    assert.deepEqual([report?.key, report?.state, report?.pulled, others], [small.digest, 'Ready', pulled, []])
    await pins.stop()
    const later = Array.from({ length: 7 }, (_, index) => `${host()}/team/image:${index}`)
    for (const name of later) await images.ensure({ ...wanted(reference), name }, options())
    assert.deepEqual(images.copies()[0]?.pulled?.names, [...names.slice(1), ...later])
    const long = ['x', 'y', 'z'].map((letter) => `${host()}/${letter.repeat(200)}`)
    for (const name of long) await images.ensure({ ...wanted(reference), name }, options())
    assert.deepEqual(images.copies()[0]?.pulled?.names, long.slice(1))
    // After a restart the copy is kept again before anything is requested.
    const pinned: string[][] = []
    const again = await node(undefined, folder, {
      held: async () => () => false,
      pin: async (keys) => void pinned.push([...keys]),
    })
    await again.images.pin([wanted(reference), { name: 'other', content: 'sha256:1' }])
    assert.deepEqual([pinned, again.asked], [[[small.digest, 'sha256:1']], []])
  })

  it('an image of a registry continues after an interruption, and waits for a server that is restarted', async () => {
    const reference = await publish()
    const cut = new AbortController()
    const [last = '', ...others] = chunks().toReversed()
    registry.bend = ({ method, path: at }) =>
      method === 'GET' && at.endsWith(last) ? new Promise<boolean>(() => undefined) : false
    const { images, folder } = await node()
    const rejected = assert.rejects(images.ensure(wanted(reference), options(cut.signal)), { name: 'AbortError' })
    const store = await images.store()
    await eventually(async () => {
      for (const digest of others) assert.ok(await store?.has(digest))
    })
    cut.abort()
    await rejected
    registry.bend = () => false
    registry.seen.length = 0
    let failures = 2
    const again = await node(async () => {
      if (failures-- > 0) throw new ConnectionError('lost', 'server', 'the connection was lost', 'try again')
      return login()
    }, folder)
    const { disk } = await again.images.ensure(wanted(reference), options())
    assert.ok(await hasDisk(disk))
    assert.deepEqual(chunksRead(), [last])
  })

  it('an image of a registry that does not respond reports the reason and the next try after the first failure', async () => {
    const reference = await publish()
    const [chunk = ''] = chunks()
    let failures = 2
    registry.bend = ({ path: at }, response) => at.endsWith(chunk) && failures-- > 0 && reply(response, 503)
    const { images } = await node()
    const told: string[] = []
    const { disk } = await images.ensure(wanted(reference), options(never, told))
    assert.ok(await hasDisk(disk))
    const waits = told.filter((text) => /^pulling, waiting: .* failed \(503\); next try at [\d:]{8} UTC/.test(text))
    assert.equal(waits.length, 2, told.join('\n'))
    assert.match(told.at(-1) ?? '', /^pulling(, .* left)? 100$/)
  })

  it('an image of a registry does not exist on the node if a byte of it is wrong, or access is denied', async () => {
    const reference = await publish()
    const [{ digest = '' } = {}] = small.manifest.layers[0]?.chunks ?? []
    const right = registry.blobs.get(digest) ?? Buffer.alloc(0)
    registry.blobs.set(digest, Buffer.from(right.map((byte) => byte ^ 1)))
    const { images, folder } = await node()
    await assert.rejects(
      images.ensure(wanted(reference), options()),
      /could not be pulled: .*does not match its digest/,
    )
    registry.blobs.set(digest, right)
    registry.bend = (_, response) => reply(response, 401, { 'www-authenticate': 'Basic realm="x"' })
    await assert.rejects(images.ensure(wanted(reference), options()), /could not be pulled: .*rejected the credentials/)
    const gone = await node(async () => Promise.reject(new ApiError('NotFound', 'vms "uid-1" not found')))
    await assert.rejects(gone.images.ensure(wanted(reference), options()), /"uid-1" not found/)
    assert.deepEqual(
      (await fs.readdir(folder)).filter((name) => name.startsWith('sha256-')),
      [],
    )
    assert.deepEqual(images.names(), [])
  })

  it("an image of a registry in tart's format is unpacked once, and not again while its content exists", async () => {
    const disk = Buffer.concat([randomBytes(mib), Buffer.alloc(mib), Buffer.from('x'.repeat(mib))])
    const opened = openRegistry(login())
    const digest = await putTart(opened.repository('team/image'), 'tart', { disk, layerBytes: mib })
    opened.close()
    const { images, folder } = await node()
    const image = wanted(`${host()}/team/image@${digest}`)
    const made = await images.ensure(image, options())
    assert.ok((await fs.readFile(made.disk)).equals(disk))
    assert.deepEqual(made.boot, { kind: 'firmware' })
    await fs.rm(path.dirname(made.disk), { recursive: true })
    registry.bend = (_, response) => reply(response, 500)
    const again = await (await node(undefined, folder)).images.ensure(image, options())
    assert.ok((await fs.readFile(again.disk)).equals(disk))
  })
})
