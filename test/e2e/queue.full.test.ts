// The queue as people see it, on SQLite and on two servers with etcd: the namespace with the least goes next, in
// whatever order they asked; priority moves an owner's own VMs only; a large VM gets a node after a minute; and nothing
// that runs is ended for any of it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startAgent } from '../../src/agent/agent.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { silentLog } from '../../src/platform/log.ts'
import { makeFolder } from '../support/processes/dev-server.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { type ServerProcess, startServerProcess } from '../support/processes/servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const inNamespace = '/namespaces/svc-default'
const seats = 4
const endings = 20
const timeoutMs = 30_000

interface Listed {
  readonly name: string
  readonly uid: string
  readonly status: string
  readonly owner: string
  readonly warm?: string
}

class Queue {
  readonly cleanup = new AsyncDisposableStack()
  readonly #servers: ServerProcess[] = []
  readonly #tokens = new Map<string, string>()
  #count = 0

  static async start(names: readonly string[], ip: string, storeAddress: string | undefined): Promise<Queue> {
    const queue = new Queue()
    const folder = await makeFolder()
    queue.cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
    const place = { masterKey: randomBytes(32).toString('base64'), ...(storeAddress !== undefined && { storeAddress }) }
    for (const name of names) {
      const server = await startServerProcess({ dataFolder: path.join(folder, name), ...place })
      queue.cleanup.defer(() => server.kill())
      queue.#servers.push(server)
    }
    await queue.call('POST', '/images', { name: 'empty', size: '1G' })
    const agent = await startAgent({
      apiUrls: queue.#servers.map(({ apiUrl }) => apiUrl),
      folder: path.join(folder, 'node'),
      imageFolder: path.join(folder, 'images'),
      name: 'node-1',
      version: '3.0.0-test',
      driver: new SimulatedDriver({ architectures: ['amd64'] }),
      capacity: { architecture: 'amd64', ip, cpu: seats, memoryMiB: 65_536 },
      joinToken: async () => queue.#servers[0]?.joinToken ?? '',
      log: silentLog,
    })
    queue.cleanup.defer(() => agent.stop())
    await agent.ready
    for (const owner of ['ada', 'bob']) {
      await queue.call('POST', `/serviceaccounts/${owner}`)
      const { token } = await queue.call('POST', `/serviceaccounts/${owner}/token`, {})
      queue.#tokens.set(owner, token)
    }
    return queue
  }

  /** On any of the servers. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async call(method: string, where: string, body?: object, owner?: string): Promise<any> {
    const server = this.#servers[this.#count++ % this.#servers.length] as ServerProcess
    const token = owner === undefined ? undefined : this.#tokens.get(owner)
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await server.call(method, inNamespace + where, body, headers)
    assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async ask(owner: string, name: string, more: object = {}): Promise<void> {
    await this.call('POST', '/vms?wait=false', { name, image: 'empty', cpu: 1, memory: 0.25, ...more }, owner)
  }

  async end(name: string): Promise<void> {
    await this.call('DELETE', `/vms/${name}`)
  }

  async list(): Promise<Listed[]> {
    return (await this.call('GET', '/vms')).items
  }

  async running(): Promise<string[]> {
    return (await this.list()).filter(({ status }) => status === 'Running').map(({ name }) => name)
  }

  /** `ended`: the other server may not have heard of its end yet. */
  async full(ended?: string): Promise<string[]> {
    let found: string[] = []
    await eventually(async () => {
      found = (await this.running()).filter((name) => name !== ended)
      assert.equal(found.length, seats)
    }, timeoutMs)
    return found
  }

  /** Ends one, and says who got its place. */
  async next(ended: string): Promise<string> {
    const had = await this.full()
    await this.end(ended)
    const [next, ...more] = (await this.full(ended)).filter((name) => !had.includes(name))
    assert.ok(next !== undefined && more.length === 0)
    return next
  }

  async clear(): Promise<void> {
    await Promise.all((await this.list()).map(({ name }) => this.end(name)))
    await eventually(async () => assert.deepEqual(await this.list(), []), timeoutMs)
  }
}

/** Simulated ports share this process, so each host has a separate address. */
const stores = [
  ['SQLite', ['a'], '127.0.11.1'],
  ['etcd', ['a', 'b'], '127.0.11.2'],
] as const

function describeQueue([store, servers, ip]: (typeof stores)[number]): void {
  describe(`the queue on ${store}`, { concurrency: 1 }, () => {
    let etcd: Awaited<ReturnType<typeof startEtcd>> | undefined
    let queue: Queue
    before(async () => {
      if (store === 'etcd') etcd = await startEtcd()
      queue = await Queue.start(servers, ip, etcd && `etcd://${new URL(etcd.urls[0] ?? '').host}/queue`)
    })
    after(async () => {
      await queue?.cleanup.disposeAsync()
      await etcd?.end()
    })

    it(`who has least goes next on ${store}, and priority moves an owner's own VMs only`, async () => {
      for (const name of ['ada-1', 'ada-2', 'ada-3']) await queue.ask('ada', name)
      await queue.ask('bob', 'bob-1')
      await queue.full()
      await queue.ask('ada', 'ada-4')
      await queue.ask('ada', 'ada-5', { priority: 10 })
      await queue.ask('bob', 'bob-2')
      await queue.ask('bob', 'bob-3')
      await eventually(async () => {
        const { items } = await queue.call('GET', '/queue')
        assert.deepEqual(
          items.map(({ name, position }: { name: string; position: number }) => [position, name]),
          [
            [1, 'bob-2'],
            [2, 'bob-3'],
            [3, 'ada-5'],
            [4, 'ada-4'],
          ],
        )
      }, timeoutMs)
      assert.equal(await queue.next('ada-1'), 'bob-2')
      assert.equal(await queue.next('ada-2'), 'ada-5')
      assert.equal(await queue.next('bob-1'), 'bob-3')
      assert.equal(await queue.next('bob-2'), 'ada-4')
      await queue.clear()
    })

    it(`two owners who both wait get the same on ${store}, though one asks ten times as often`, async () => {
      for (let index = 0; index < endings; index++) await queue.ask('ada', `ada-${index}`)
      for (let index = 0; index < 3; index++) await queue.ask('bob', `bob-${index}`)
      let asked = 3
      /** In the order in which they began: all live equally long. */
      const alive = await queue.full()
      const got = { ada: 0, bob: 0 }
      for (let ending = 0; ending < endings; ending++) {
        const next = await queue.next(alive.shift() ?? '')
        alive.push(next)
        const owner = next.startsWith('bob') ? 'bob' : 'ada'
        got[owner] += 1
        if (owner === 'bob') await queue.ask('bob', `bob-${asked++}`)
      }
      assert.ok(Math.abs(got.ada - got.bob) <= endings / 10, JSON.stringify(got))
      await queue.clear()
    })

    it(`a large VM gets a node after a minute on ${store}, and no VM is ended for it, warm or not`, async () => {
      await queue.call('POST', '/vmconfigs', { name: 'small', image: 'empty', cpu: 1, memory: 0.25 })
      await queue.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
      await eventually(async () => assert.equal((await queue.call('GET', '/pools/warm')).ready, 1), timeoutMs)
      await queue.call('PUT', '/pools/warm', { paused: true })
      const claimed = await queue.call('POST', '/vms', { name: 'ada-warm', vmConfig: 'small' }, 'ada')
      assert.equal(claimed.warm, 'warm')
      for (const name of ['ada-1', 'ada-2', 'ada-3']) await queue.ask('ada', name)
      const alive = (await queue.full()).filter((name) => name !== 'ada-warm')
      await queue.ask('bob', 'large', { cpu: seats - 1, priority: 100 })
      const sinceMs = performance.now()
      const large = async () => (await queue.list()).find(({ name }) => name === 'large')?.status
      // One ends, another one comes, again and again; the large one finds room only where a node is kept for it.
      let small = 4
      let wasKept = false
      while ((await large()) !== 'Running') {
        const waitedMs = performance.now() - sinceMs
        assert.ok(waitedMs < 60_000 + 2 * timeoutMs, 'it starves')
        await queue.ask('ada', `ada-${small++}`)
        const { items } = await queue.call('GET', '/queue')
        const message = items.find(({ name }: Listed) => name === 'large')?.message ?? ''
        wasKept ||= /Node node-1 is kept free for it/.test(message)
        const ended = alive.shift()
        if (ended !== undefined) await queue.end(ended)
        await sleep(2_000)
        for (const name of await queue.running())
          if (name !== 'ada-warm' && name !== 'large' && !alive.includes(name)) alive.push(name)
      }
      assert.ok(performance.now() - sinceMs > 55_000, 'it did not wait for its node')
      assert.ok(wasKept, 'nothing said that a node was kept free')
      const left = await queue.list()
      for (const name of alive) assert.equal(left.find((vm) => vm.name === name)?.status, 'Running', name)
      const warm = left.find(({ name }) => name === 'ada-warm')
      assert.deepEqual([warm?.uid, warm?.status], [claimed.uid, 'Running'])
      await queue.clear()
    })
  })
}

// Both at once: each waits for a minute.
describe('the queue', { concurrency: 2 }, () => {
  for (const store of stores) describeQueue(store)
})
