// A quota under fire: 32 writers deploy and delete through two servers on etcd, and through one on SQLite, while
// servers are killed with -9. What is used is within the limits at every revision of the record, and in the end exactly
// what VMs have.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, startAgent } from '../../src/agent/agent.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { silentLog } from '../../src/platform/log.ts'
import { totalOf } from '../../src/rules/queue/quota.ts'
import { openStore } from '../../src/store/open.ts'
import type { QuotaRecord } from '../../src/store/records/fleet-records.ts'
import { type Entry, type Store, zeroRev } from '../../src/store/store.ts'
import { makeFolder } from '../support/processes/dev-server.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { type ServerProcess, startServerProcess } from '../support/processes/servers.ts'
import { startTcpProxy, type TcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

const vmsPath = '/namespaces/svc-default/vms'
const quotaPath = '/namespaces/svc-default/quota'
const limits = { vms: 7, cpu: 11, memory: 9 }
const writers = 32
const kills = isAllTested ? 12 : 2
const secondsBetweenKills = 3

/** Every value that the record had after a revision, and the revision that this was read at. */
async function historyOf(store: Store, after: string): Promise<{ found: QuotaRecord[]; rev: string }> {
  const found: QuotaRecord[] = []
  const { rev } = await store.list('/quotas/')
  const stop = new AbortController()
  for await (const batch of store.watch('/quotas/', after, stop.signal)) {
    if ('type' in batch) break
    for (const change of batch) if (change.type === 'put') found.push(change.entry.value as unknown as QuotaRecord)
  }
  stop.abort()
  return { found, rev }
}

/** A server that dies and comes again, at an address that stays. */
class Mortal {
  current: ServerProcess | undefined
  readonly #start: () => Promise<ServerProcess>
  readonly #proxy: TcpProxy

  private constructor(start: () => Promise<ServerProcess>, proxy: TcpProxy, current: ServerProcess) {
    this.#start = start
    this.#proxy = proxy
    this.current = current
  }

  static async start(start: () => Promise<ServerProcess>): Promise<Mortal> {
    const first = await start()
    return new Mortal(start, await startTcpProxy(portOf(first), { isPatient: true }), first)
  }

  get url(): string {
    return `http://127.0.0.1:${this.#proxy.port}`
  }

  async dieAndReturn(whileDead?: () => Promise<void>): Promise<void> {
    const { current } = this
    this.current = undefined
    this.#proxy.aim('none')
    await current?.kill('SIGKILL')
    this.#proxy.cut()
    await whileDead?.()
    this.current = await this.#start()
    this.#proxy.aim(portOf(this.current))
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await this.current?.kill(signal)
    await this.#proxy[Symbol.asyncDispose]()
  }
}

const portOf = ({ apiUrl }: ServerProcess): number => Number(new URL(apiUrl).port)

async function run(
  folder: string,
  names: readonly string[],
  storeAddress: string | undefined,
  whileDead?: () => Promise<void>,
): Promise<void> {
  const masterKey = randomBytes(32).toString('base64')
  await using cleanup = new AsyncDisposableStack()
  const servers = await Promise.all(
    names.map((name) =>
      Mortal.start(() =>
        startServerProcess({
          dataFolder: path.join(folder, name),
          ...(storeAddress !== undefined && { storeAddress }),
          masterKey,
        }),
      ),
    ),
  )
  for (const server of servers) cleanup.defer(() => server.end('SIGKILL'))
  const any = (): ServerProcess | undefined => servers[Math.floor(Math.random() * servers.length)]?.current
  const call = async (method: string, where: string, body?: object) => {
    for (;;) {
      const server = any()
      const answer = await server?.call(method, where, body).catch(() => undefined)
      if (answer && answer.status < 500 && answer.status !== 429) return answer
      await sleep(50)
    }
  }
  const [first] = servers
  const made = await call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
  assert.equal(made.status, 202, JSON.stringify(made.body))
  for (let index = 1; index <= 3; index++) {
    const agent: Agent = await startAgent({
      apiUrls: servers.map(({ url }) => url),
      folder: path.join(folder, `node-${index}`),
      imageFolder: path.join(folder, `node-${index}-images`),
      name: `node-${index}`,
      version: '3.0.0-test',
      driver: new SimulatedDriver({ architectures: ['amd64'] }),
      // Of their own for each test: simulated VMs that outlive their agent keep its ports in this process.
      capacity: { architecture: 'amd64', ip: `127.0.${6 + names.length}.${index}`, cpu: 16, memoryMiB: 65_536 },
      joinToken: async () => first?.current?.joinToken ?? '',
      log: silentLog,
    })
    cleanup.defer(() => agent.stop())
    await agent.ready
  }
  const set = await call('PUT', quotaPath, limits)
  assert.equal(set.status, 200, JSON.stringify(set.body))

  const outcomes: Record<string, number> = {}
  let isOver = false
  const writer = async (id: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const name = `vm-${id}-${turn}`
      const query = turn % 2 === 0 ? '?wait=false' : '?wait=false&onQuota=refuse'
      const size = { cpu: 1 + ((id + turn) % 3), memory: 1 + (turn % 2) }
      const { status } = await call('POST', vmsPath + query, { image: 'empty', name, ...size })
      outcomes[status] = (outcomes[status] ?? 0) + 1
      await sleep(100 + Math.random() * 400)
      // Also after a refusal: a request that a killed server cut off may have made it, and its repetition found the
      // quota full.
      const remove = async (): Promise<boolean> => (await call('DELETE', `${vmsPath}/${name}`)).status !== 404
      // One that was made may be news to the other server, which is behind while both are busy.
      for (let tries = 1; !(await remove()) && status < 300 && tries < 10; tries++) await sleep(300)
    }
  }
  const work = Array.from({ length: writers }, (_, id) => writer(id))
  for (let kill = 0; kill < kills; kill++) {
    await sleep(secondsBetweenKills * 1_000)
    await servers[kill % servers.length]?.dieAndReturn(whileDead)
  }
  await sleep(secondsBetweenKills * 1_000)
  isOver = true
  await Promise.all(work)
  assert.ok((outcomes[202] ?? 0) > limits.vms && (outcomes[403] ?? 0) > 0, JSON.stringify(outcomes))

  // All are deleted; what a killed server left is swept.
  await eventually(async () => {
    assert.deepEqual((await call('GET', vmsPath)).body.items, [])
    assert.deepEqual((await call('GET', quotaPath)).body.used, { vms: 0, cpu: 0, memory: 0, macos: 0 })
  }, 180_000)
  // And it is as good as new: all of it can be had again.
  const again = await Promise.all(
    Array.from({ length: limits.vms }, (_, id) =>
      call('POST', `${vmsPath}?onQuota=refuse`, { image: 'empty', name: `again-${id}`, cpu: 1, memory: 1 }),
    ),
  )
  // 409: the answer to the first request was lost, and the repeated request found the VM.
  const refused = again.filter(({ status }) => status !== 201 && status !== 409)
  assert.deepEqual(refused, [], JSON.stringify(refused))
  const more = await call('POST', `${vmsPath}?onQuota=refuse`, { image: 'empty', name: 'more', cpu: 1, memory: 1 })
  assert.equal(more.status, 403, JSON.stringify(more.body))
}

function check(history: readonly QuotaRecord[]): void {
  assert.ok(history.length > limits.vms, `${history.length} revisions`)
  let most = 0
  for (const { used, limits: allowed } of history) {
    const { vms, cpu, memoryMiB } = totalOf(used)
    most = Math.max(most, vms)
    if (allowed.vms === undefined) continue
    assert.ok(vms <= limits.vms && cpu <= limits.cpu && memoryMiB <= limits.memory * 1_024, JSON.stringify(used))
  }
  assert.ok(most >= 5, `at most ${most} VMs at a time: the limits were never reached`)
}

describe('a quota under kill -9', () => {
  it('a quota is never passed at any revision with 32 writers on two servers that are killed, on etcd', async () => {
    await using etcd = await startEtcd()
    const folder = await makeFolder()
    const storeAddress = `etcd://${new URL(etcd.urls[0] ?? '').host}/quota`
    const store = await openStore(storeAddress)
    const { rev } = await store.list('/quotas/')
    // As it comes: busy servers keep the last 10,000 changes.
    const found: Entry[] = []
    const stop = new AbortController()
    const following = (async () => {
      for await (const batch of store.watch('/quotas/', rev, stop.signal))
        if (!('type' in batch)) for (const change of batch) if (change.type === 'put') found.push(change.entry)
    })()
    try {
      await run(folder, ['a', 'b'], storeAddress)
      const [last] = (await store.list('/quotas/')).entries
      await eventually(async () => assert.equal(found.at(-1)?.rev, last?.rev), 10_000)
      check(found.map(({ value }) => value as unknown as QuotaRecord))
    } finally {
      stop.abort()
      await following
      await store.close()
      await fs.rm(folder, { recursive: true, force: true })
    }
  })

  it('a quota is never passed at any revision with 32 writers on a server that is killed, on SQLite', async () => {
    const folder = await makeFolder()
    const found: QuotaRecord[] = []
    let rev = zeroRev
    // Only the server can open it while it lives, and a busy one keeps the last 10,000 changes.
    const read = async (): Promise<void> => {
      const store = await openStore(`sqlite:${path.join(folder, 'a')}`)
      try {
        const more = await historyOf(store, rev)
        found.push(...more.found)
        rev = more.rev
      } finally {
        await store.close()
      }
    }
    try {
      await run(folder, ['a'], undefined, read)
      await read()
      check(found)
    } finally {
      await fs.rm(folder, { recursive: true, force: true })
    }
  })
})
