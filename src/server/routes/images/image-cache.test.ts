// The image cache over HTTP: results for each node, the messages to agents, and the effects of their reports.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import type { DesiredCache, NodeCache } from '../../../api/images/image-cache.ts'
import type { Peer } from '../../../api/nodes/agent.ts'

const base = '/api/v1/namespaces/svc-default'
const space = { quotaBytes: 1_000, usedBytes: 0 }
let service: TestService
let one: NodeStandIn
before(async () => {
  service = await startService()
  for (const name of ['sonoma', 'ventura']) await addImage(service, name, 'amd64')
  await addImage(service, 'silicon', 'arm64')
  one = await startNode(service, { name: 'one', report: { cache: [], imageSpace: space } })
  await startNode(service, { name: 'old' })
  await startNode(service, { name: 'arm', report: { architecture: 'arm64', cache: [] } })
})
after(() => service[Symbol.asyncDispose]())

const ask = async (image: string, verb: 'add' | 'remove', body: unknown) => {
  const answer = await service.call('POST', `${base}/cache/images/${image}/${verb}`, { body, token: service.devToken })
  assert.equal(answer.status, 207, answer.text)
  return answer.body.items as { node: string; code: number; result: string; message: string }[]
}
const copies = async (image: string) => (await service.call('GET', `${base}/cache/images/${image}`)).body.nodes
const lastTold = (): DesiredCache | undefined =>
  one.told.flatMap((message) => (message.type === 'CACHE' ? [message.cache] : [])).at(-1)
const told = (wanted: DesiredCache) => eventually(async () => assert.deepEqual(lastTold(), wanted))
/** The items by node, as an open watch shows them. */
function followCopies(signal: AbortSignal): Record<string, readonly string[]> {
  const seen: Record<string, readonly string[]> = {}
  const follow = async (): Promise<void> => {
    const headers = { authorization: `Bearer ${service.devToken}` }
    const { body } = await fetch(`${await service.listen()}${base}/cache/nodes?watch=true`, { headers, signal })
    for await (const line of createInterface(Readable.fromWeb(body as never))) {
      const { type, object } = JSON.parse(line) as { type: string; object: NodeCache }
      if (type === 'BOOKMARK') continue
      seen[object.name] = object.copies.map(({ image, state, progress }) =>
        [image, state, progress?.percent].join(' ').trim(),
      )
    }
  }
  follow().catch((error: unknown) => signal.aborted || assert.fail(String(error)))
  return seen
}
const cacheOf = (node = 'one') => service.services.collections.nodes.get('', node)?.value.cache
const sonoma = { name: 'sonoma', recipe: 'sonoma' }

describe('adding', () => {
  it('adding has a result for each node', async () => {
    const items = await ask('sonoma', 'add', { nodes: ['one', 'old', 'arm', 'none'] })
    assert.deepEqual(
      items.map(({ node, code, result }) => [node, code, result]),
      [
        ['arm', 422, 'WrongArchitecture'],
        ['none', 404, 'NotFound'],
        ['old', 409, 'NotPossible'],
        ['one', 202, 'Accepted'],
      ],
    )
    await told({ images: [sonoma], drops: [] })
    assert.deepEqual(await copies('sonoma'), [{ node: 'one', state: 'Pending', pinned: true }])
    assert.equal((await ask('sonoma', 'add', { nodes: ['one'] }))[0]?.result, 'Unchanged')
  })

  it('adding accepts an image named like a property of Object, and shows images that are not pinned', async () => {
    await addImage(service, 'constructor', 'amd64')
    const kept = async () => (await ask('constructor', 'add', { nodes: ['one'] })).map(({ result }) => result)
    assert.deepEqual(await kept(), ['Accepted'])
    assert.deepEqual(await kept(), ['Unchanged'])
    assert.deepEqual(await copies('constructor'), [{ node: 'one', state: 'Pending', pinned: true }])
    await ask('constructor', 'remove', { nodes: ['one'] })
    assert.deepEqual(await copies('constructor'), [])
  })

  it('adding by tag or on all nodes selects only suitable nodes', async () => {
    assert.deepEqual(
      (await ask('sonoma', 'add', { all: true })).map(({ node }) => node),
      ['old', 'one'],
    )
    await service.call('POST', `${base}/nodes/arm/tag`, { body: { tag: 'ci' } })
    for (const body of [{ tags: ['ci'] }, { tags: ['none'] }])
      assert.equal((await service.call('POST', `${base}/cache/images/sonoma/add`, { body })).status, 404)
    assert.equal((await service.call('POST', `${base}/cache/images/nothing/add`, { body: { all: true } })).status, 404)
  })

  it('adding shows the agent’s status, which is written only when it changes', async () => {
    const key = 'recipe:sonoma'
    await one.report({ cache: [{ key, state: 'Fetching', percent: 35 }] })
    const copy = { node: 'one', pinned: true }
    assert.deepEqual(await copies('sonoma'), [{ ...copy, state: 'Fetching', progress: { percent: 35 } }])
    await one.report({ cache: [{ key, state: 'Failed', problem: 'no network' }] })
    assert.deepEqual(await copies('sonoma'), [{ ...copy, state: 'Failed', errorMessage: 'no network' }])
    const usedAt = '2026-11-15T09:00:00Z'
    await one.report({ cache: [{ key, state: 'Ready', bytes: 800, usedAt }] })
    const ready = { ...copy, state: 'Ready', bytes: 800, spaceUsed: '800', lastUsed: usedAt }
    assert.deepEqual(await copies('sonoma'), [ready])
    const rev = service.services.collections.nodes.view.revOf()
    await one.report({ imageSpace: { quotaBytes: 1_010, usedBytes: 800 } })
    assert.equal(service.services.collections.nodes.view.revOf(), rev)
    const { body } = await service.call('GET', `${base}/cache/images`)
    assert.deepEqual(
      body.items.map((item: { name: string }) => item.name),
      ['sonoma'],
    )
  })

  it('adding is refused if the pinned images would not fit', async () => {
    const { images } = service.services.collections
    const entry = images.get('', 'ventura')
    assert.ok(entry)
    await images.update(entry, { ...entry.value, spaceUsedBytes: 300 })
    const [refused] = await ask('ventura', 'add', { nodes: ['one'] })
    assert.deepEqual([refused?.code, refused?.result], [409, 'NoSpace'])
    assert.match(refused?.message ?? '', /would take 1\.1 KiB, the quota is 1 KiB/)
  })
})

describe('a pinned image', () => {
  it('a pinned image follows changes of its content, and is removed when it is deleted', async () => {
    const { images } = service.services.collections
    const stop = new AbortController()
    const watched = followCopies(stop.signal)
    const onOne = (copies: readonly string[]) => eventually(() => assert.deepEqual(watched.one, copies))
    const entry = await images.create('', 'moving', {
      ...(images.get('', 'sonoma')?.value as never as object),
      ...{ name: 'moving', recipe: undefined, content: `sha256:${'a'.repeat(64)}` },
    } as never)
    await ask('moving', 'add', { nodes: ['one'] })
    await told({ images: [sonoma, { name: 'moving', content: `sha256:${'a'.repeat(64)}` }], drops: [] })
    await onOne(['moving Pending', 'sonoma Ready'])
    await one.report({
      cache: [
        { key: 'recipe:sonoma', state: 'Ready' },
        { key: `sha256:${'a'.repeat(64)}`, state: 'Fetching', percent: 7 },
      ],
    })
    await onOne(['moving Fetching 7', 'sonoma Ready'])
    await images.update(entry, { ...entry.value, content: `sha256:${'b'.repeat(64)}` })
    await told({ images: [sonoma, { name: 'moving', content: `sha256:${'b'.repeat(64)}` }], drops: [] })
    // The copy has the old content.
    await onOne(['moving Pending', 'sonoma Ready'])
    assert.equal((await service.call('DELETE', `${base}/images/moving`)).status, 200)
    await told({ images: [sonoma], drops: [] })
    await one.report()
    assert.deepEqual(Object.keys(cacheOf()?.pins ?? {}), ['sonoma'])
    await onOne(['sonoma Ready'])
    stop.abort()
  })

  it('a pinned image is sent again when an agent connects', async () => {
    one.disconnect()
    one.connect()
    await eventually(async () => {
      const hello = one.told.findLast((message) => message.type === 'HELLO')
      assert.deepEqual(hello?.type === 'HELLO' && hello.cache, { images: [sonoma], drops: [] })
    })
  })
})

describe('removing', () => {
  it('removing is refused while a VM uses the content, also by another name', async () => {
    await using _ = startScheduler(service)
    const body = { image: 'sonoma', name: 'user', node: 'one' }
    assert.equal((await service.call('POST', `${base}/vms`, { body })).status, 201)
    const [used] = await ask('sonoma', 'remove', { nodes: ['one'] })
    assert.deepEqual([used?.code, used?.message], [409, 'VMs on the node use the image: svc-default/user'])
    assert.equal((await service.call('DELETE', `${base}/vms/user`)).status, 200)
    assert.equal((await service.call('POST', `${base}/images/sonoma/copy`, { body: { name: 'twin' } })).status, 202)
    const [kept] = await ask('twin', 'remove', { all: true })
    assert.deepEqual([kept?.code, kept?.message], [409, 'Kept for sonoma, which has the same content'])
  })

  it('removing is sent to the agent until it reports that the copy is deleted', async () => {
    assert.deepEqual(
      (await ask('ventura', 'remove', { nodes: ['none', 'one'] })).map(({ code, result }) => [code, result]),
      [
        [404, 'NotFound'],
        [200, 'Unchanged'],
      ],
    )
    assert.deepEqual((await ask('sonoma', 'remove', { all: true }))[0]?.message, 'Removing')
    await told({ images: [], drops: ['recipe:sonoma'] })
    assert.equal((await copies('sonoma'))[0].state, 'Removing')
    await one.report({ busyPorts: [99] })
    assert.deepEqual(cacheOf(), { pins: {}, drops: ['recipe:sonoma'] })
    await one.report({ cache: [] })
    assert.deepEqual([cacheOf(), await copies('sonoma')], [{ pins: {}, drops: [] }, []])
    assert.deepEqual(await ask('sonoma', 'remove', { all: true }), [])
  })

  it('removing by …/imagecache/remove has the image in the body', async () => {
    const remove = (body: unknown, token = service.devToken) =>
      service.call('POST', `${base}/imagecache/remove`, { body, token })
    await ask('sonoma', 'add', { nodes: ['one'] })
    await one.report({ cache: [{ key: 'recipe:sonoma', state: 'Ready' }] })
    for (const [body, status] of [
      [{ all: true }, 400],
      [{ image: 'sonoma' }, 400],
      [{ image: 'nothing', all: true }, 404],
    ] as const)
      assert.equal((await remove(body)).status, status)
    assert.equal((await copies('sonoma'))[0].state, 'Ready')
    const answer = await remove({ image: 'sonoma', nodes: ['one'] })
    const item = { node: 'one', code: 202, result: 'Accepted', message: 'Removing' }
    assert.deepEqual([answer.status, answer.body], [207, { items: [item] }])
    await told({ images: [], drops: ['recipe:sonoma'] })
    const { body } = await service.call('GET', `${base}/events`)
    assert.match(body.items.at(-1).message, /removed image sonoma from the cache \(nodes one\)$/)
  })

  it('removing by digest removes neither other content of the tag nor the pin of a tag', async () => {
    const [old, moved] = ['1', '2'].map((each) => `ghcr.io/team/image@sha256:${each.repeat(64)}`)
    const tag = 'ghcr.io/team/image:v1'
    const copyOf = (key: string, reference = '') => ({
      ...{ key, state: 'Ready' as const },
      pulled: { reference, names: [tag], sizeBytes: 1 },
    })
    await one.report({ cache: [copyOf('sha256:a', old)] })
    const second = await startNode(service, { name: 'two', report: { cache: [copyOf('sha256:b', moved)] } })
    const remove = (image = '') => ask(encodeURIComponent(image), 'remove', { all: true })
    assert.equal((await copies(encodeURIComponent(tag))).length, 2)
    const removed = (await remove(old)).map(({ node, message }) => [node, message])
    assert.deepEqual(removed, [['one', 'Removing']])
    assert.equal(cacheOf('two'), undefined)

    const entry = service.services.collections.nodes.get('', 'two')
    assert.ok(entry)
    const pulled = { reference: moved ?? '', sizeBytes: 1, storedBytes: 1 }
    const cache = { pins: { [tag]: { by: 'dev', at: '2026-11-15T09:00:00Z', pulled } }, drops: [] }
    await service.services.collections.nodes.update(entry, { ...entry.value, cache })
    assert.equal((await remove(moved))[0]?.message, `Kept for ${tag}, which has the same content`)
    assert.deepEqual(cacheOf('two'), cache)
    second.disconnect()
    await one.report({ cache: [] })
  })

  it('removing by tags selects nodes with all of them', async () => {
    await service.call('POST', `${base}/nodes/one/tag`, { body: { tag: 'ios' } })
    await one.report({ cache: [{ key: 'recipe:ventura', state: 'Ready' }] })
    assert.deepEqual(await ask('ventura', 'remove', { tags: ['ios', 'beta'] }), [])
    await service.call('POST', `${base}/nodes/one/tag`, { body: { tag: 'beta' } })
    assert.equal((await ask('ventura', 'remove', { tags: ['ios', 'beta'] }))[0]?.message, 'Removing')
  })
})

describe('peers', () => {
  it('peers are connected nodes that serve and have the image, each with its own secrets', async () => {
    const content = `sha256:${'c'.repeat(64)}`
    const find = async () =>
      (await service.call('POST', '/api/v1/agent/peers', { token: one.token, body: { content } })).body.peers
    const serving = { cache: [{ key: content, state: 'Ready' as const }], peerPort: 4_711, ip: '10.0.0.9' }
    const other = await startNode(service, { name: 'other', report: serving })
    await one.report(serving)
    const [peer, ...more] = await find()
    assert.deepEqual([more, peer.node, peer.ip, peer.port], [[], 'other', '10.0.0.9', 4_711])
    const uidOf = (name: string) => service.services.collections.nodes.get('', name)?.value.uid
    assert.equal(peer.uid, uidOf('other'))
    assert.equal(peer.identity.replace(/^\d+\./, ''), uidOf('one'))
    other.disconnect()
    await eventually(async () => assert.deepEqual(await find(), []))
    const body = { ...service.services.collections.nodes.get('', 'one')?.value.report }
    const answer = await service.call('POST', '/api/v1/agent/node', { token: one.token, body })
    assert.equal(Object.keys(answer.body.peerSecrets).length, 3)
    assert.ok(!service.logLines.join().includes(Object.values(answer.body.peerSecrets)[0] as string))
  })

  it('image metrics of nodes are in the metrics', async () => {
    const images = { reads: 12, readWaitMs: 1_500, peerBytes: 10, serverBytes: 20, registryBytes: 30 }
    const report = { token: one.token, body: { vms: [], images } }
    for (let times = 0; times < 2; times++)
      assert.equal((await service.call('POST', '/api/v1/agent/vms', report)).status, 200)
    const { text } = await service.call('GET', '/metrics')
    assert.match(text, /^svc3_image_lazy_reads_total 12$/m)
    assert.match(text, /^svc3_image_lazy_read_wait_seconds_total 1\.5$/m)
    assert.match(text, /^svc3_image_fetched_bytes_total\{source="registry"\} 30$/m)
  })

  it('the boot order of an image is stored for the next node, and an invalid one is refused', async () => {
    const content = `sha256:${'b'.repeat(64)}`
    const note = (body: object) => service.call('POST', '/api/v1/agent/boot-order', { token: one.token, body })
    assert.deepEqual((await note({ content })).body.chunks, [])
    assert.deepEqual((await note({ content, chunks: [3, 1] })).body.chunks, [3, 1])
    assert.deepEqual((await note({ content, chunks: [1, 4] })).body.chunks, [1, 4, 3])
    assert.deepEqual((await note({ content })).body.chunks, [1, 4, 3])
    for (const wrong of [{ content: 'x' }, { content, chunks: [-1] }, { content, chunks: Array(65).fill(0) }])
      assert.ok([400, 422].includes((await note(wrong)).status), JSON.stringify(wrong))
    assert.deepEqual((await note({ content })).body.chunks, [1, 4, 3])
  })

  it('peers of a chunk are nodes that asked for it before, if no node has the whole image', async () => {
    const [content, chunk] = [`sha256:${'d'.repeat(64)}`, `sha256:${'e'.repeat(64)}`]
    const find = async (token: string, more: object = {}): Promise<Peer[]> =>
      (await service.call('POST', '/api/v1/agent/peers', { token, body: { content, chunk, ...more } })).body.peers
    const serving = { cache: [], peerPort: 4_711, ip: '10.0.0.9' }
    const first = await startNode(service, { name: 'first', report: serving })
    const second = await startNode(service, { name: 'second', report: serving })
    assert.deepEqual(await find(first.token), [])
    assert.deepEqual(await find(first.token), [])
    const [peer, ...more] = await find(second.token)
    assert.deepEqual([more, peer?.node, peer?.port], [[], 'first', 4_711])
    assert.deepEqual(await find(second.token, { without: ['first'] }), [])
  })
})
