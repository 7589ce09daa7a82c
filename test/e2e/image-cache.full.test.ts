// The image cache with a real server and real agents as processes: images come to nodes on demand, from each other
// where they can, and are evicted again; a peer that dies in the middle goes unnoticed.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { CachedCopy, NodeResult } from '../../src/api/images/image-cache.ts'
import { chunksOf } from '../../src/images/format/manifest.ts'
import { readManifest } from '../../src/images/pack/stored-manifests.ts'
import { startService, type TestService } from '../support/rigs/service.ts'
import { startScheduler } from '../support/stand-ins/node.ts'

const base = '/api/v1/namespaces/svc-default'
const program = path.resolve(import.meta.dirname, './cache-agent-process.ts')
const mib = 2 ** 20
const disk = randomBytes(20 * mib)
const children = new Map<string, ChildProcess>()
let service: TestService
let apiUrl: string
let token: string
let root: string

before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-image-cache-'))
  service = await startService()
  // Agents say what time it is, and would be refused after minutes by one that stands still.
  service.clock.now = () => new Date()
  token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
  apiUrl = await service.listen()
  await upload('big', disk)
})
after(async () => {
  for (const name of children.keys()) await end(name)
  await service[Symbol.asyncDispose]()
  await fs.rm(root, { recursive: true, force: true })
})

async function upload(name: string, body: Buffer): Promise<string> {
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await service.call('POST', `${base}/upload/image?name=${name}&type=amd64`, { token, body, headers })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.checksum
}

/** An agent that is connected. */
async function start(name: string, options: { quotaMib?: number; failpoint?: string } = {}): Promise<ChildProcess> {
  const join = await service.services.nodeKeys.issueJoinToken('svc-default', 600)
  const words = [program, apiUrl, join.token, path.join(root, name), String((options.quotaMib ?? 500) * mib)]
  const env = { ...process.env, SVC3_TEST: '1', ...(options.failpoint && { SVC3_FAILPOINT: options.failpoint }) }
  const opened = until(() => service.services.fleet.isOpen(name) || undefined)
  const child = spawn(process.execPath, words, { env, stdio: 'inherit' })
  children.set(name, child)
  await opened
  return child
}

/** It was evicted, and the server knows. */
async function kill(name: string): Promise<void> {
  const gone = until(() => !service.services.fleet.isOpen(name) || undefined)
  await end(name)
  await gone
}

async function end(name: string): Promise<void> {
  const child = children.get(name)
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Looks whenever a record or a stream has changed. */
function until<T>(look: () => T | undefined, withinMs = 120_000): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const check = (): void => {
    const found = look()
    if (found !== undefined) resolve(found)
  }
  const timer = setTimeout(() => reject(new Error(`it did not happen: ${look}`)), withinMs)
  const { collections, fleet } = service.services
  const ends = [collections.nodes.view.subscribe(check), fleet.subscribe(check)]
  check()
  return promise.finally(() => {
    clearTimeout(timer)
    for (const end of ends) end()
  })
}

const ask = async (image: string, verb: 'add' | 'remove', body: unknown): Promise<NodeResult[]> => {
  const answer = await service.call('POST', `${base}/cache/images/${image}/${verb}`, { token, body })
  assert.equal(answer.status, 207, answer.text)
  return answer.body.items
}
/** Until the node says what a test waits for about an image. */
async function copyOn(node: string, image: string, isRight: (copy: CachedCopy | undefined) => boolean) {
  const { collections } = service.services
  const { cachedImage } = await import('../../src/server/nodes/cache.ts')
  return until(() => {
    const [record, its] = [collections.nodes.get('', node)?.value, collections.images.get('', image)?.value]
    const copy = record && its && cachedImage(its, [record]).nodes[0]
    return isRight(copy) ? { copy } : undefined
  })
}
const isReady = (copy: CachedCopy | undefined): boolean => copy?.state === 'Ready'
const fileOn = (node: string, checksum: string): string =>
  path.join(root, node, 'images', checksum.replace(':', '-'), 'disk.raw')
const contentOf = (image: string): string => service.services.collections.images.get('', image)?.value.content ?? ''
const hasDisk = async (node: string, bytes = disk): Promise<boolean> =>
  (await fs.readFile(fileOn(node, contentOf('big')))).equals(bytes)

describe('the image cache of nodes', () => {
  it('the image cache of nodes has an image fetched, tells how far it is, and keeps it', async () => {
    await start('one')
    const seen = new Set<string>()
    const told = Promise.withResolvers<void>()
    const watching = service.services.collections.nodes.view.subscribe((changes) => {
      for (const change of changes)
        if (change.type === 'put') for (const copy of change.entry.value.report?.cache ?? []) seen.add(copy.state)
      if (seen.has('Fetching')) told.resolve()
    })
    // However fast it is: nothing arrives before it has said that it fetches.
    const { content } = service.services
    const { size } = content
    Object.assign(content, { size: (digest: string) => told.promise.then(() => size.call(content, digest)) })
    assert.deepEqual(await ask('big', 'add', { nodes: ['one', 'nobody'] }), [
      { node: 'nobody', code: 404, result: 'NotFound', message: 'Node not found in the namespace' },
      { node: 'one', code: 202, result: 'Accepted', message: 'Fetching' },
    ])
    const { copy } = await copyOn('one', 'big', isReady)
    Object.assign(content, { size })
    watching()
    assert.ok(await hasDisk('one'))
    assert.deepEqual([...seen], ['Fetching', 'Ready'])
    assert.ok(copy?.pinned && (copy.bytes ?? 0) >= disk.length && copy.lastUsed !== undefined, JSON.stringify(copy))
    const [again] = await ask('big', 'add', { all: true })
    assert.deepEqual([again?.code, again?.message], [200, 'Already cached'])
  })

  it('the image cache of nodes takes an image from another node: the server gives the manifest and nothing else', async () => {
    const { content } = service.services
    for (const { digest } of chunksOf(await readManifest(content, contentOf('big'))))
      await content.deleteUnused(digest, Number.POSITIVE_INFINITY)
    await start('two')
    await ask('big', 'add', { nodes: ['two'] })
    await copyOn('two', 'big', isReady)
    assert.ok(await hasDisk('two'))
  })

  it('the image cache of nodes goes on with the server when the other node dies in the middle', async () => {
    await upload('again', disk)
    await kill('two')
    await kill('one')
    const dying = await start('one', { failpoint: 'agent.peer.sent' })
    const ended = once(dying, 'exit')
    await copyOn('one', 'big', isReady)
    await start('three')
    await ask('big', 'add', { nodes: ['three'] })
    await copyOn('three', 'big', isReady)
    assert.deepEqual(await ended, [null, 'SIGKILL'])
    assert.ok(await hasDisk('three'))
  })

  it('the image cache of nodes does not take an image from under a VM, and drops it when that is gone', async () => {
    await using _ = startScheduler(service)
    await ask('big', 'remove', { nodes: ['one'] })
    const body = { image: 'big', name: 'user', node: 'three', cpu: 1, memory: 0.5 }
    assert.equal((await service.call('POST', `${base}/vms`, { token, body })).status, 201)
    const [used] = await ask('big', 'remove', { nodes: ['three'] })
    assert.deepEqual([used?.code, used?.message], [409, 'VMs on the node use the image: svc-default/user'])
    assert.equal((await service.call('DELETE', `${base}/vms/user`, { token })).status, 200)
    const [gone] = await ask('big', 'remove', { nodes: ['three'] })
    assert.equal(gone?.result, 'Accepted')
    await copyOn('three', 'big', (copy) => copy === undefined)
    await assert.rejects(fs.stat(fileOn('three', contentOf('big'))), { code: 'ENOENT' })
    assert.deepEqual(service.services.collections.nodes.get('', 'three')?.value.cache, { pins: {}, drops: [] })
  })

  it('the image cache of nodes follows the image when it changes, and says why where there is no room', async () => {
    const [first, second] = [randomBytes(2 * mib), randomBytes(2 * mib)]
    const [old, changed] = [await upload('moving', first), await upload('other', second)]
    await start('small', { quotaMib: 12 })
    await ask('moving', 'add', { nodes: ['small'] })
    await copyOn('small', 'moving', isReady)
    const { images } = service.services.collections
    const entry = images.get('', 'moving')
    assert.ok(entry)
    await images.update(entry, { ...entry.value, content: changed, version: 2 })
    await copyOn('small', 'moving', isReady)
    assert.ok((await fs.readFile(fileOn('small', changed))).equals(second))
    assert.notEqual(old, changed)
    const [refused] = await ask('big', 'add', { nodes: ['small'] })
    assert.deepEqual([refused?.code, refused?.result], [409, 'NoSpace'])
    assert.match(refused?.message ?? '', /would take 2\d MiB, the quota is 12 MiB/)
  })
})
