// Save, commit and restore on the server, with a node that tests control: names, locks, records after a crash of a server or
// a node, and when content is deleted.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import { collectOnce } from '../../../controllers/collect-images.ts'
import { settleOnce } from '../../../controllers/settle-captures.ts'
import { collect } from '../../../images/collect.ts'
import type { Chunk, Manifest } from '../../../images/format/format.ts'
import { decodeManifest, digestOf, encodeManifest } from '../../../images/format/manifest.ts'
import { contentCheckMs, contentGraceMs } from '../../../rules/retention.ts'
import { openMemory } from '../../../store/memory.ts'
import type { ImageRecord, VmRecord } from '../../../store/records/fleet-records.ts'
import type { Store } from '../../../store/store.ts'
import { openImageContents } from '../../images/contents.ts'

const here = '/api/v1/namespaces/svc-default'
let service: TestService
let scheduler: AsyncDisposable
let intel: NodeStandIn
let arm: NodeStandIn
/** VMs for which the nodes send no reports. */
const frozen = new Set<string>()

/** Delays each call of the store by a random time, so that concurrent requests run in random order. */
const dawdling = (store: Store): Store =>
  new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (!['get', 'list', 'create', 'update'].includes(String(name))) return value.bind(target)
      return async (...args: unknown[]) => {
        if (isDawdling) await sleep(Math.random() * (name === 'create' ? 14 : 3))
        return value.apply(target, args)
      }
    },
  })
let isDawdling = false

before(async () => {
  service = await startService({ store: dawdling(openMemory()) })
  scheduler = startScheduler(service)
  const answer = (vm: { name: string; power: string; generation: number; captures?: unknown[] }) => {
    const isWaiting = vm.power === 'deleted' && (vm.captures?.length ?? 0) > 0
    if (frozen.has(vm.name) || isWaiting) return undefined
    return { generation: vm.generation, power: vm.power === 'deleted' ? 'removed' : vm.power, diskGb: 1 } as never
  }
  const many = { cpu: 1_000, memoryMiB: 2_000_000 }
  intel = await startNode(service, { name: 'intel', react: answer, report: { architecture: 'amd64', ...many } })
  arm = await startNode(service, { name: 'arm', react: answer, report: { architecture: 'arm64', ...many } })
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const post = (path: string, body?: unknown, key?: string): Promise<Answer> =>
  service.call('POST', `${here}/${path}`, {
    ...(body !== undefined && { body }),
    ...(key !== undefined && { headers: { 'idempotency-key': key } }),
  })
const deploy = (name: string, image: string, extra: object = {}) => post('vms', { name, image, cpu: 1, ...extra })
const image = (name: string): ImageRecord | undefined => service.services.collections.images.get('', name)?.value
const vm = (name: string): VmRecord | undefined => service.services.collections.vms.get('svc-default', name)?.value
const capturing = (name: string): string => image(name)?.capture?.id ?? ''
const agent = (node: NodeStandIn, path: string, body: unknown) =>
  service.call('POST', `/api/v1/agent/${path}`, { token: node.token, body })
const sendBlob = (node: NodeStandIn, bytes: Buffer, digest = digestOf(bytes)) =>
  service.call('PUT', `/api/v1/agent/blobs/${digest}`, {
    token: node.token,
    body: bytes,
    headers: { 'content-type': 'application/octet-stream', 'content-length': String(bytes.length) },
  })
const remove = (name: string, query = '') => service.call('DELETE', `${here}/vms/${name}${query}`)

/** An image of one chunk. */
function made(architecture: 'arm64' | 'amd64', change: Pick<Manifest, 'os'> = {}) {
  const chunk = randomBytes(65_536)
  const stored = {
    digest: digestOf(chunk),
    storedBytes: chunk.length,
    rawBytes: chunk.length,
    compression: 'none',
  } as const
  const manifest: Manifest = {
    formatVersion: 1,
    architecture,
    virtualSizeBytes: 2 ** 21,
    boot: { kind: 'firmware' },
    ...change,
    layers: [{ chunks: [{ ...stored, extents: [[0, chunk.length]] }] }],
  }
  const { bytes, digest } = encodeManifest(manifest)
  return { chunk, manifest: bytes, content: digest }
}

/** Reports like an agent that has uploaded everything. */
async function deliver(node: NodeStandIn, id: string, { chunk, manifest, content } = made('amd64')): Promise<string> {
  const { missing } = (await agent(node, `captures/${id}`, { content })).body
  assert.deepEqual(missing, [content])
  await sendBlob(node, manifest)
  const next = (await agent(node, `captures/${id}`, { content })).body
  assert.deepEqual(next.missing, [digestOf(chunk)])
  assert.equal((await sendBlob(node, chunk)).status, 201)
  const last = await agent(node, `captures/${id}`, { content })
  assert.deepEqual(last.body, { missing: [] }, last.text)
  return content
}

describe('save', () => {
  before(async () => {
    await addImage(service, 'base', 'amd64')
    await deploy('saver', 'base')
  })

  it('save records its user and how many bytes it adds to the source of the VM; a copy adds none', async () => {
    await post('vms/saver/save', { imageName: 'root' })
    const root = made('amd64')
    await deliver(intel, capturing('root'), root)
    await deploy('heir', 'root')
    await post('vms/heir/save', { imageName: 'child' })
    const added = randomBytes(65_536)
    const { layers, ...rest } = decodeManifest(root.manifest)
    const chunk = { ...layers[0]?.chunks[0], digest: digestOf(added), extents: [[65_536, 65_536]] } as Chunk
    const child = encodeManifest({ ...rest, parent: root.content, layers: [...layers, { chunks: [chunk] }] })
    await deliver(intel, capturing('child'), { chunk: added, manifest: child.bytes, content: child.digest })
    await post('images/child/copy', { name: 'twin' })
    const versionOf = async (name: string) => (await service.call('GET', `${here}/images/${name}`)).body.versions[0]
    const { by, vm: from, bytesAdded } = await versionOf('child')
    assert.deepEqual([by, from], ['admin@example.com', 'svc-default/heir'])
    assert.equal(bytesAdded, child.bytes.length + added.length)
    assert.equal((await versionOf('root')).bytesAdded, root.manifest.length + root.chunk.length)
    assert.equal((await versionOf('twin')).bytesAdded, 0)
  })

  it('save creates an image that is Updating until all of it has arrived, and then Ready', async () => {
    const answer = await post('vms/saver/save', { imageName: 'saved', description: 'all of it' })
    assert.deepEqual([answer.status, answer.body.state, answer.body.sourceType], [202, 'Updating', 'vm'], answer.text)
    assert.deepEqual([answer.body.source, answer.body.sourceNamespace], ['saver', 'svc-default'])
    const id = capturing('saved')
    assert.deepEqual(vm('saver')?.captures, [{ id, kind: 'save', withMemory: true, image: 'saved' }])
    const told = intel.told.findLast((message) => message.type === 'VM')
    assert.deepEqual(told?.type === 'VM' && told.vm.captures, [{ id, kind: 'save', withMemory: true }])
    // The VM accepts actions again as soon as its node has frozen it, which is immediate here.
    await eventually(async () => assert.equal(vm('saver')?.observed.generation, vm('saver')?.desired.generation))
    for (const words of ['images/saved/copy', 'vms'])
      assert.equal((await post(words, { name: 'early', image: 'saved' })).status, 409, words)
    await agent(intel, `captures/${id}/progress`, { percent: 40, bytes: 1_000 })
    const shown = (await service.call('GET', `${here}/images/saved`)).body
    assert.deepEqual([shown.state, shown.progress], ['Updating', { percent: 40, bytes: 1_000 }])
    await agent(intel, `captures/${id}/progress`, { percent: 40, bytes: 1_000, phase: 'waiting: not now' })
    const waiting = (await service.call('GET', `${here}/images/saved`)).body
    assert.deepEqual([waiting.state, waiting.errorMessage], ['Updating', 'waiting: not now'])
    const content = await deliver(intel, id)
    const ready = (await service.call('GET', `${here}/images/saved`)).body
    assert.deepEqual([ready.state, ready.checksum, ready.size, ready.progress], ['Ready', content, '2M', undefined])
    assert.equal(ready.description, 'all of it')
    assert.deepEqual(ready.parent, { image: 'base', version: 1, vm: 'svc-default/saver' })
    const manifestBytes = (await service.services.content.size(content)) ?? 0
    const created = {
      version: 1,
      createdAt: ready.lastUpdatedTimestamp,
      checksum: content,
      vm: 'svc-default/saver',
      by: 'admin@example.com',
      // Nodes build the source image themselves, so the store has none of its content.
      bytesAdded: 65_536 + manifestBytes,
    }
    assert.deepEqual([ready.version, ready.versions], [1, [created]])
    assert.equal(vm('saver')?.captures, undefined)
    assert.deepEqual([image('base')?.recipe, image('base')?.content], ['base', undefined])
    const again = await agent(intel, `captures/${id}`, { content })
    assert.equal(again.status, 404)
  })

  it('save takes the guest system from the image, or from the node', async () => {
    const { images } = service.services.collections
    const base = images.get('', 'base')
    assert.ok(base)
    await images.update(base, { ...base.value, os: 'linux' })
    assert.equal((await post('vms/saver/save', { imageName: 'same-guest' })).body.os, 'linux')
    await deliver(intel, capturing('same-guest'))
    assert.equal(image('same-guest')?.os, 'linux')
    await post('vms/saver/save', { imageName: 'packed-guest' })
    await deliver(intel, capturing('packed-guest'), made('amd64', { os: 'macos' }))
    assert.equal(image('packed-guest')?.os, 'macos')
  })

  it('save requires a valid name and a running VM, and runs once at a time for a VM', async () => {
    for (const imageName of ['', '.', '..', 'A', 'a/b', 'x'.repeat(64)])
      assert.ok([400, 422].includes((await post('vms/saver/save', { imageName })).status), imageName)
    assert.equal((await post('vms/saver/save', { imageName: 'saved' })).body.reason, 'AlreadyExists')
    assert.equal((await post('vms/none/save', { imageName: 'x' })).status, 404)
    await post('vms/saver/exec', { command: 'stop' })
    const stopped = await post('vms/saver/save', { imageName: 'x' })
    assert.deepEqual([stopped.status, image('x')], [409, undefined], stopped.text)
    await post('vms/saver/exec', { command: 'start' })
    frozen.add('saver')
    assert.equal((await post('vms/saver/save', { imageName: 'one' })).status, 202)
    const busy = await post('vms/saver/save', { imageName: 'two' })
    assert.deepEqual([busy.status, image('two')], [409, undefined])
    assert.match(busy.body.message, /save in progress/)
    frozen.delete('saver')
    await intel.say(vm('saver') as VmRecord, { generation: vm('saver')?.desired.generation ?? 0, diskGb: 1 })
    assert.equal((await post('vms/saver/save', { imageName: 'two' })).status, 202)
    assert.equal(vm('saver')?.captures?.length, 2)
    for (const name of ['one', 'two']) await deliver(intel, capturing(name))
  })

  it('save: a repeated request gets the same image, also after a crash between its two records', async () => {
    const first = await post('vms/saver/save', { imageName: 'keyed' }, 'key-1')
    const again = await post('vms/saver/save', { imageName: 'keyed' }, 'key-1')
    assert.deepEqual([first.status, again.status, again.body.name], [202, 202, 'keyed'])
    assert.equal(vm('saver')?.captures?.length, 1)
    // The state after a crash before the VM's record was written.
    const { vms, answers } = service.services.collections
    for (const entry of answers.list()) await answers.delete(entry)
    const entry = vms.get('svc-default', 'saver')
    assert.ok(entry)
    const { captures: _, ...rest } = entry.value
    await vms.update(entry, { ...rest, desired: { ...rest.desired, requestKey: undefined } })
    const third = await post('vms/saver/save', { imageName: 'keyed' }, 'key-1')
    assert.deepEqual([third.status, third.body.state], [202, 'Updating'], third.text)
    assert.equal(vm('saver')?.captures?.[0]?.id, capturing('keyed'))
    await deliver(intel, capturing('keyed'))
  })

  it('save that fails leaves an image with the reason, which can be deleted', async () => {
    await post('vms/saver/save', { imageName: 'broken' })
    const problem = 'the disk of node "intel" is full'
    await agent(intel, `captures/${capturing('broken')}/progress`, { percent: 0, bytes: 0, problem })
    const { body } = await service.call('GET', `${here}/images/broken`)
    assert.deepEqual([body.state, body.errorMessage, vm('saver')?.captures], ['Failed', problem, undefined])
    assert.equal((await deploy('x', 'broken')).status, 409)
    assert.equal((await service.call('DELETE', `${here}/images/broken`)).status, 200)
  })

  it('save accepts only content that matches its digest, and an image of the VM’s architecture', async () => {
    await post('vms/saver/save', { imageName: 'strict' })
    const id = capturing('strict')
    assert.equal((await sendBlob(intel, Buffer.from('other'), digestOf('what was said'))).status, 400)
    assert.equal((await sendBlob(intel, Buffer.from('x'), 'sha256:../../x')).status, 422)
    const bytes = Buffer.from('{"not":"a manifest"}')
    await sendBlob(intel, bytes)
    assert.equal((await agent(intel, `captures/${id}`, { content: digestOf(bytes) })).status, 422)
    const foreign = made('arm64')
    await sendBlob(intel, foreign.manifest)
    assert.equal((await agent(intel, `captures/${id}`, { content: foreign.content })).status, 422)
    // A node cannot report captures of another node's VM.
    assert.equal((await agent(arm, `captures/${id}`, { content: foreign.content })).status, 404)
    assert.equal(image('strict')?.state, 'Updating')
    await deliver(intel, id)
  })
})

describe('content of nodes', () => {
  it('content of a node without a save or commit in progress is refused, and nothing is stored', async () => {
    const folder = service.services.content.folder
    const blobs = async () => (await fs.readdir(folder, { recursive: true })).length
    const before = await blobs()
    assert.equal(vm('saver')?.captures, undefined)
    for (let n = 0; n < 40; n++) {
      const refused = await sendBlob(intel, randomBytes(1_024))
      assert.equal(refused.status, 404, refused.text)
    }
    assert.equal((await agent(intel, 'blobs/missing', { digests: [digestOf(Buffer.from('x'))] })).status, 404)
    assert.equal(await blobs(), before)
  })

  it('content of a capture is limited by the disk and the memory of its VM', async () => {
    await post('vms/saver/save', { imageName: 'huge' })
    const id = capturing('huge')
    const { runningCaptures } = service.services
    const { memoryMiB = 0 } = vm('saver')?.place ?? {}
    const maxBytes = 2 ** 30 + memoryMiB * 2 ** 20 + 2 ** 30
    assert.ok(runningCaptures.receives(id, maxBytes - 1_500, maxBytes))
    assert.equal((await sendBlob(intel, randomBytes(1_000))).status, 201)
    const refused = await sendBlob(intel, randomBytes(1_000))
    assert.deepEqual([refused.status, refused.body.reason], [413, 'RequestEntityTooLarge'], refused.text)
    await agent(intel, `captures/${id}/progress`, { percent: 0, bytes: 0, problem: 'too large' })
    assert.equal(image('huge')?.state, 'Failed')
  })
})

describe('a VM that is deleted while it is being saved', () => {
  it('a VM that is deleted while it is being saved waits until the image is complete', async () => {
    await addImage(service, 'waiting', 'arm64')
    await deploy('leaver', 'waiting')
    await post('vms/leaver/save', { imageName: 'left' })
    const id = capturing('left')
    const gone = remove('leaver')
    await eventually(async () => assert.equal(vm('leaver')?.desired.power, 'deleted'))
    assert.equal(vm('leaver')?.captures?.length, 1)
    await deliver(arm, id, made('arm64'))
    await arm.say(vm('leaver') as VmRecord, { power: 'removed' })
    assert.equal((await gone).status, 200)
    assert.deepEqual([image('left')?.state, await settleOnce(service.services)], [undefined, 0])
  })

  it('a VM that is deleted by force while it is being saved leaves a failed image, and a commit keeps the old content', async () => {
    await deploy('forced', 'waiting')
    await post('vms/forced/save', { imageName: 'given-up' })
    await eventually(async () => assert.equal(vm('forced')?.observed.generation, vm('forced')?.desired.generation))
    await post('vms/forced/commit', { description: 'never' })
    assert.equal((await remove('forced', '?force=true')).status, 200)
    assert.equal(await settleOnce(service.services), 2)
    assert.deepEqual([image('given-up')?.state, image('given-up')?.capture], ['Failed', undefined])
    assert.match(image('given-up')?.errorMessage ?? '', /VM forced was removed/)
    assert.deepEqual([image('waiting')?.state, image('waiting')?.recipe], [undefined, 'waiting'])
    assert.match(image('waiting')?.errorMessage ?? '', /removed/)
  })
})

describe('commit', () => {
  it('commit creates a new version: the next VM gets it, others keep theirs until a revert', async () => {
    await addImage(service, 'tool', 'arm64')
    for (const name of ['author', 'reader']) await deploy(name, 'tool')
    const answer = await post('vms/author/commit')
    assert.deepEqual([answer.status, answer.body.state, answer.body.name], [202, 'Updating', 'tool'], answer.text)
    const second = await post('vms/reader/commit', {})
    assert.deepEqual([second.status, second.body.reason], [409, 'Conflict'])
    assert.match(second.body.message, /VM author is being committed/)
    // On Apple silicon, deployments during the commit get the old content.
    assert.equal((await deploy('during', 'tool')).status, 201)
    const content = await deliver(arm, capturing('tool'), made('arm64'))
    const { recipe, version, state } = image('tool') ?? {}
    assert.deepEqual([recipe, version, state, image('tool')?.content], [undefined, 2, undefined, content])
    assert.equal((await deploy('after', 'tool')).status, 201)
    const told = (name: string) =>
      arm.told
        .flatMap((message) => (message.type === 'VM' && message.vm.name === name ? [message.vm.image] : []))
        .at(-1)
    assert.deepEqual(told('after'), { name: 'tool', content, sizeBytes: 2 ** 21 })
    for (const name of ['author', 'reader', 'during'])
      assert.deepEqual([vm(name)?.imageContent, vm(name)?.imageRecipe], [undefined, 'tool'], name)
    await post('vms/reader/resize', { size: 3 })
    assert.deepEqual(told('reader'), { name: 'tool', recipe: 'tool', sizeBytes: 2 ** 21 })
    const { body } = await service.call('GET', `${here}/images/tool`)
    assert.deepEqual(body.usedBy.length, 4)
    const versions = body.versions as { version: number; checksum?: string; vm?: string }[]
    assert.deepEqual(
      versions.map(({ version, checksum, vm }) => [version, checksum, vm]),
      [
        [1, undefined, undefined],
        [2, content, 'svc-default/author'],
      ],
    )
    // The parent is the version that the VM was deployed from, not the current one.
    for (const [name, version] of [
      ['reader', 1],
      ['after', 2],
    ] as const) {
      const { parent } = (await post(`vms/${name}/save`, { imageName: `of-${name}` })).body
      assert.deepEqual(parent, { image: 'tool', version, vm: `svc-default/${name}` })
      await deliver(arm, capturing(`of-${name}`), made('arm64'))
    }
    const copied = await post('images/tool/copy', { name: 'tool-copy' })
    assert.deepEqual([copied.body.parent, copied.body.version], [{ image: 'tool', version: 2 }, 1])
  })

  it('commit changes the description only if there is a new one, together with the content', async () => {
    await service.call('POST', `${here}/images/tool/description`, { body: { description: 'first' } })
    await post('vms/author/commit', {})
    await deliver(arm, capturing('tool'), made('arm64'))
    assert.equal(image('tool')?.description, 'first')
    await post('vms/author/commit', { description: 'second' })
    assert.equal(image('tool')?.description, 'first')
    await deliver(arm, capturing('tool'), made('arm64'))
    assert.deepEqual([image('tool')?.description, image('tool')?.version], ['second', 4])
  })

  it('commit that fails leaves the image unchanged and Ready, with the reason', async () => {
    const before = image('tool')?.content
    await post('vms/author/commit', { description: 'third' })
    await agent(arm, `captures/${capturing('tool')}/progress`, { percent: 1, bytes: 1, problem: 'no space' })
    const { body } = await service.call('GET', `${here}/images/tool`)
    assert.deepEqual([body.state, body.checksum, body.description], ['Ready', before, 'second'])
    assert.equal(body.errorMessage, 'no space')
  })

  it('commit of an Intel-based VM is refused while another uses the image, and revert takes the new content', async () => {
    await addImage(service, 'solo', 'amd64')
    await deploy('first', 'solo')
    await deploy('other', 'solo')
    const refused = await post('vms/first/commit', {})
    assert.deepEqual([refused.status, image('solo')?.capture], [409, undefined], refused.text)
    assert.match(refused.body.message, /used by svc-default\/other/)
    await remove('other')
    assert.equal((await post('vms/first/commit', {})).status, 202)
    const during = await deploy('late', 'solo')
    assert.deepEqual([during.status, vm('late')], [409, undefined])
    const content = await deliver(intel, capturing('solo'))
    assert.equal(vm('first')?.imageRecipe, 'solo')
    assert.equal((await post('vms/first/exec', { command: 'revert' })).status, 200)
    assert.deepEqual([vm('first')?.imageContent, vm('first')?.imageRecipe], [content, undefined])
  })

  it('commit of an Intel-based VM and a concurrent deployment: never both in 50 tries', async () => {
    await addImage(service, 'raced', 'amd64')
    await deploy('racer', 'raced')
    isDawdling = true
    const startedAt = performance.now()
    await deploy('alone', 'raced')
    const deployMs = performance.now() - startedAt
    await remove('alone')
    const outcomes = { committed: 0, deployed: 0, neither: 0 }
    for (let attempt = 0; attempt < 50; attempt++) {
      // Random, so that the commit comes before, during or after the deployment.
      const lagMs = deployMs * ((attempt / 49) * 3 - 1.5)
      const [commit, ...deployed] = await Promise.all([
        sleep(Math.max(0, lagMs)).then(() => post('vms/racer/commit', {})),
        ...['a', 'b'].map((name) => sleep(Math.max(0, -lagMs)).then(() => deploy(`${name}-${attempt}`, 'raced'))),
      ])
      const isDeployed = deployed.some(({ status }) => status === 201)
      assert.ok(!(commit.status === 202 && isDeployed), `both, at attempt ${attempt}`)
      for (const { status, text } of [commit, ...deployed]) assert.ok([201, 202, 409].includes(status), text)
      outcomes[commit.status === 202 ? 'committed' : isDeployed ? 'deployed' : 'neither']++
      if (commit.status === 202) await deliver(intel, capturing('raced'))
      for (const name of ['a', 'b']) if (vm(`${name}-${attempt}`)) await remove(`${name}-${attempt}`)
      assert.equal(image('raced')?.capture, undefined)
    }
    isDawdling = false
    assert.ok(outcomes.committed > 0 && outcomes.deployed > 0, JSON.stringify(outcomes))
  })
})

describe('records that a dead server left', () => {
  it('records that a dead server left are settled: an image without its VM, and a VM with an ended capture', async () => {
    const { images, vms } = service.services.collections
    const capture = {
      id: 'lost',
      kind: 'save',
      requestedAt: '2026-11-15T09:00:00Z',
      vm: { namespace: 'svc-default', name: 'author', uid: vm('author')?.uid ?? '' },
    } as const
    const at = { owner: 'x', createdAt: capture.requestedAt, updatedAt: capture.requestedAt }
    await images.create('', 'lost', { name: 'lost', description: '', architecture: 'arm64', sizeBytes: 1, ...at, state: 'Updating', capture }) // biome-ignore format: one record
    assert.equal(await settleOnce(service.services), 0, 'its request may be under way')
    const entry = vms.get('svc-default', 'author')
    assert.ok(entry)
    await vms.update(entry, {
      ...entry.value,
      captures: [{ id: 'over', kind: 'commit', withMemory: true, image: 'tool' }],
    })
    service.clock.nowMs += 60_000
    assert.equal(await settleOnce(service.services), 1)
    assert.deepEqual([image('lost')?.state, vm('author')?.captures], ['Failed', undefined])
    service.clock.nowMs -= 60_000
  })
})

describe('restore', () => {
  const restore = (name: string, version: unknown, extra: object = {}) =>
    post(`images/${name}/restore`, { version, ...extra })
  const disk = async (name: string): Promise<Buffer> => {
    const { services } = service
    const { content } = services
    const digest = image(name)?.content ?? assert.fail()
    const bytes: Uint8Array[] = []
    const range = { start: 0, end: 65_536 }
    for await (const part of openImageContents(content).read(digest, range, AbortSignal.timeout(10_000)))
      bytes.push(Buffer.from(part))
    return Buffer.concat(bytes)
  }
  const commits: ReturnType<typeof made>[] = []
  const commit = async (): Promise<void> => {
    commits.push(made('arm64'))
    assert.equal((await post('vms/turner/commit', {})).status, 202)
    await deliver(arm, capturing('turn'), commits.at(-1))
  }
  /** The content of a version. The first was built, the second is the first commit. */
  const of = (version: number) => commits[version - 2] ?? assert.fail()
  const told = (name: string) =>
    arm.told.flatMap((message) => (message.type === 'VM' && message.vm.name === name ? [message.vm.image] : [])).at(-1)
  const collected = () =>
    collectOnce(
      service.services,
      {
        content: { collect: (manifests, options) => collect(service.services.content, manifests, options) },
        isGone: async (digest) => (await service.services.content.size(digest)) === undefined,
        sinceMs: () => Date.now() + contentGraceMs + 1_000,
      },
      AbortSignal.timeout(120_000),
    )
  const restorable = () => image('turn')?.versions?.flatMap(({ version, kept }) => (kept ? version : []))

  it('restore makes an earlier version the next one, byte for byte; existing VMs keep theirs', async () => {
    await addImage(service, 'turn', 'arm64')
    await deploy('turner', 'turn')
    await commit()
    await commit()
    assert.equal((await deploy('of-three', 'turn')).status, 201)
    await collected()
    const answer = await restore('turn', 2)
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual([answer.body.version, answer.body.checksum, answer.body.size], [4, of(2).content, '2M'])
    assert.deepEqual(
      answer.body.versions.map(({ version, checksum, restored, restorable }: Record<string, unknown>) => [
        version,
        checksum,
        restored,
        restorable,
      ]),
      [
        [1, undefined, undefined, true],
        [2, of(2).content, undefined, true],
        [3, of(3).content, undefined, true],
        [4, of(2).content, 2, undefined],
      ],
    )
    assert.deepEqual(await disk('turn'), of(2).chunk)
    assert.equal((await deploy('of-four', 'turn')).status, 201)
    assert.deepEqual(
      [told('of-four'), vm('of-three')?.imageContent],
      [{ name: 'turn', content: of(2).content, sizeBytes: 2 ** 21 }, of(3).content],
    )
    const { items } = (await service.call('GET', `${here}/events?fieldSelector=involved.name%3Dturn`)).body
    assert.ok(
      items.some(({ message }: { message: string }) => message.endsWith('restored version 2 of image turn')),
      JSON.stringify(items),
    )
    // A version that nodes build is restored as such.
    assert.equal((await restore('turn', 1)).body.version, 5)
    assert.deepEqual(
      [image('turn')?.recipe, image('turn')?.content, image('turn')?.sizeBytes],
      ['turn', undefined, 2 ** 30],
    )
    assert.equal((await deploy('of-five', 'turn')).status, 201)
    assert.deepEqual(told('of-five'), { name: 'turn', recipe: 'turn', sizeBytes: 2 ** 30 })
    assert.equal((await restore('turn', 3)).body.checksum, of(3).content)
    assert.deepEqual(await disk('turn'), of(3).chunk)
  })

  it('restore refuses a version that is current, unknown or invalid, and an image that changed or is being written', async () => {
    const before = image('turn')
    const refusals: readonly (readonly [unknown, number, RegExp, object?])[] = [
      [6, 409, /Image turn is at version 6 now/],
      [99, 409, /Image turn has no version 99/],
      [0, 422, /version must be at least 1/],
      ['2', 400, /version/],
      [2, 409, /[Cc]hanged/, { resourceVersion: '1' }],
    ]
    for (const [version, status, text, extra] of refusals) {
      const refused = await restore('turn', version, extra)
      assert.deepEqual([refused.status, text.test(refused.text)], [status, true], refused.text)
    }
    assert.equal((await restore('nowhere', 1)).status, 404)
    assert.equal((await post('vms/turner/commit', {})).status, 202)
    const busy = await restore('turn', 2)
    assert.deepEqual([busy.status, busy.body.message], [409, 'Image turn is Updating and cannot be restored'])
    assert.deepEqual(image('turn')?.versions, before?.versions)
    commits.push(made('arm64'), made('arm64'), made('arm64'), made('arm64'))
    await deliver(arm, capturing('turn'), commits.at(-1))
    assert.equal(image('turn')?.version, 7)
  })

  it('restore works for the last five versions; older content is freed, and versions show that', async () => {
    assert.deepEqual(restorable(), [2, 3, 4, 5, 6])
    for (const name of ['of-three', 'of-four']) await remove(name)
    await eventually(() => assert.deepEqual([vm('of-three'), vm('of-four')], [undefined, undefined]))
    await commit()
    await commit()
    await commit()
    assert.deepEqual(restorable(), [5, 6, 7, 8, 9])
    await collected()
    const has = (version: number) => service.services.content.has(of(version).content)
    assert.deepEqual([await has(2), await has(3), await has(7)], [false, true, true], 'the sixth is the third again')
    const gone = await restore('turn', 2)
    assert.deepEqual(
      [gone.status, gone.body.message, gone.body.details.hint ?? gone.body.hint],
      [409, 'Image turn no longer has the content of version 2', 'Choose one of 5, 6, 7, 8, 9'],
    )
    // Content that was lost otherwise is refused as well, and the collector continues.
    assert.ok(await service.services.content.deleteUnused(of(7).content, Date.now() + 60_000))
    const lost = await restore('turn', 7)
    assert.deepEqual([lost.status, lost.body.message], [409, 'Image turn has lost content of version 7'])
    const stray = await service.services.content.put(randomBytes(1_000))
    await collected()
    assert.equal(await service.services.content.has(stray.digest), false)
  })
})

describe('the collector', () => {
  it('the collector keeps content of running captures, and frees the rest within ten minutes', async () => {
    assert.ok(contentGraceMs + 1.1 * contentCheckMs < 10 * 60_000)
    const { content, runningCaptures } = service.services
    await post('vms/author/save', { imageName: 'slow' })
    const { chunk, manifest, content: digest } = made('arm64')
    await agent(arm, `captures/${capturing('slow')}/progress`, { percent: 1, bytes: 1 })
    await sendBlob(arm, chunk)
    const run = (aheadMs: number) =>
      collectOnce(
        service.services,
        {
          content: { collect: (manifests, options) => collect(content, manifests, options) },
          isGone: async (digest) => (await content.size(digest)) === undefined,
          // Much later, but still in progress.
          sinceMs: () => (aheadMs === 0 ? runningCaptures.oldestStartMs() : Date.now() + aheadMs),
        },
        AbortSignal.timeout(120_000),
      )
    await run(0)
    assert.ok(await content.has(digestOf(chunk)))
    await sendBlob(arm, manifest)
    assert.deepEqual((await agent(arm, `captures/${capturing('slow')}`, { content: digest })).body, { missing: [] })
    const stray = await content.put(randomBytes(1_000))
    await run(contentGraceMs + 1_000)
    assert.deepEqual([await content.has(stray.digest), await content.has(digestOf(chunk))], [false, true])
    assert.ok(await content.has(digest))
  })
})
