// Two hundred requests on twenty warm VMs, while the server, the leader or an agent is killed at each step of handing
// them out: on two servers with etcd, and on one with SQLite. No warm VM is handed out twice, none is lost, and nothing
// is left over.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeFolder } from '../support/processes/dev-server.ts'
import { startEtcd } from '../support/processes/etcd.ts'
import { type ServerProcess, startServerProcess } from '../support/processes/servers.ts'
import { Undying } from '../support/processes/undying.ts'
import { startTcpProxy, type TcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { eventually } from '../support/tools/eventually.ts'
import { simulatedVms } from '../support/tools/simulated-vms.ts'

const agentProgram = path.resolve(import.meta.dirname, '../support/processes/agent-process.ts')
const inNamespace = '/namespaces/svc-default'
const [slots, requests] = [20, 200]
const timeoutMs = 120_000

/**
 * Where something dies: by itself at a point that it comes to, or because it is killed while requests are on their way.
 */
const faults = [
  'nothing',
  'schedule.placed',
  'pools.filled',
  'agent.claim.claim',
  'agent.claim.done',
  'kill -9 of a server',
] as const
type Fault = (typeof faults)[number]

class Rig implements AsyncDisposable {
  readonly folder: string
  readonly #fatal: string
  readonly #cleanup = new AsyncDisposableStack()
  readonly #processes: Undying[] = []
  readonly #servers: { readonly proxy: TcpProxy; current: ServerProcess | undefined; readonly process: Undying }[] = []

  private constructor(folder: string) {
    this.folder = folder
    this.#fatal = path.join(folder, 'fatal')
  }

  static async start(names: readonly string[], storeAddress: string | undefined): Promise<Rig> {
    const rig = new Rig(await makeFolder())
    const masterKey = randomBytes(32).toString('base64')
    for (const name of names) await rig.#serve(name, { masterKey, ...(storeAddress !== undefined && { storeAddress }) })
    const made = await rig.call('POST', `${inNamespace}/images`, { name: 'empty', size: '1G' })
    assert.equal(made.status, 202, JSON.stringify(made.body))
    const urls = rig.#servers.map(({ proxy }) => `http://127.0.0.1:${proxy.port}`).join(',')
    const joinToken = rig.#servers[0]?.current?.joinToken ?? ''
    for (const index of [1, 2]) {
      const capacity = JSON.stringify({ architecture: 'amd64', ip: `127.0.9.${index}`, cpu: 150, memoryMiB: 262_144 })
      const words = [agentProgram, urls, joinToken, path.join(rig.folder, `node-${index}`), capacity]
      await rig.#keep(async () => spawn(process.execPath, words, { env: rig.#env, stdio: 'inherit' }))
    }
    return rig
  }

  get #env() {
    return { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: `@${this.#fatal}` }
  }

  async #keep(start: () => Promise<ChildProcess>, died: () => void = () => undefined): Promise<Undying> {
    const kept = new Undying(start, () => {
      // One death is enough.
      void this.dieAt(undefined)
      died()
    })
    this.#processes.push(kept)
    this.#cleanup.use(kept)
    return kept.start()
  }

  async #serve(name: string, place: { readonly masterKey: string; readonly storeAddress?: string }): Promise<void> {
    const proxy = await startTcpProxy(1, { isPatient: true })
    this.#cleanup.use(proxy)
    proxy.aim('none')
    const server = { proxy, current: undefined as ServerProcess | undefined }
    const start = async (): Promise<ChildProcess> => {
      const started = await startServerProcess({
        dataFolder: path.join(this.folder, name),
        env: this.#env as Record<string, string>,
        isQuiet: true,
        ...place,
      })
      server.current = started
      proxy.aim(Number(new URL(started.apiUrl).port))
      return started.child
    }
    const died = (): void => {
      server.current = undefined
      proxy.aim('none')
      proxy.cut()
    }
    const kept = await this.#keep(start, died)
    this.#servers.push(Object.assign(server, { process: kept }))
  }

  /** Repeated until it is answered, by whichever server is there. */
  async call(method: string, where: string, body?: object) {
    for (;;) {
      const servers = this.#servers.flatMap(({ current }) => current ?? [])
      const server = servers[Math.floor(Math.random() * servers.length)]
      const answer = await server?.call(method, where, body).catch(() => undefined)
      if (answer && answer.status < 500 && answer.status !== 429) return answer
      await sleep(50)
    }
  }

  async dieAt(point: string | undefined): Promise<void> {
    if (point === undefined) await fs.rm(this.#fatal, { force: true })
    else await fs.writeFile(this.#fatal, point)
  }

  killServer(): void {
    this.#servers[0]?.process.child?.kill('SIGKILL')
  }

  get deaths(): number {
    return this.#processes.reduce((sum, { deaths }) => sum + deaths, 0)
  }

  /** Of VMs and warm VMs on all nodes. */
  onDisk(): number {
    return [1, 2].flatMap((index) => simulatedVms(path.join(this.folder, `node-${index}`))).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanup.disposeAsync()
    await fs.rm(this.folder, { recursive: true, force: true })
  }
}

interface Listed {
  readonly name: string
  readonly status: string
  readonly warm?: string
  readonly ip: string
  readonly ssh: number
  readonly labels: object
}

async function run(rig: Rig, round: number, fault: Fault): Promise<void> {
  const { deaths } = rig
  const isKill = fault === 'nothing' || fault.startsWith('kill')
  const poolPath = `${inNamespace}/pools/warm`
  if (fault === 'pools.filled') await rig.dieAt(fault)
  await rig.call('PUT', poolPath, { paused: false })
  await eventually(async () => assert.equal((await rig.call('GET', poolPath)).body.ready, slots), timeoutMs)
  await rig.call('PUT', poolPath, { paused: true })
  assert.equal(rig.onDisk(), slots)
  if (!isKill && fault !== 'pools.filled') await rig.dieAt(fault)
  const labels = { round: String(round) }
  const asked = Promise.all(
    Array.from({ length: requests }, (_, index) =>
      rig.call('POST', `${inNamespace}/vms?wait=false`, { name: `r${round}-${index}`, vmConfig: 'small', labels }),
    ),
  )
  if (fault.startsWith('kill')) {
    await sleep(150)
    rig.killServer()
  }
  // 409: the answer was lost with the server, and the repeated request found the VM.
  for (const { status, body } of await asked) assert.ok(status === 202 || status === 409, JSON.stringify(body))
  const list = async (): Promise<Listed[]> => (await rig.call('GET', `${inNamespace}/vms`)).body.items
  await eventually(async () => {
    const states = Map.groupBy(await list(), ({ status }) => status)
    assert.deepEqual(
      [...states].map(([status, { length }]) => [status, length]),
      [['Running', requests]],
    )
  }, timeoutMs)
  if (fault !== 'nothing') assert.ok(rig.deaths > deaths, `nothing died at ${fault}`)
  const vms = await list()
  assert.equal(vms.filter(({ warm }) => warm === 'warm').length, slots, `warm VMs handed out, ${fault}`)
  // One that was handed out twice would have given its ports twice.
  assert.equal(new Set(vms.map(({ ip, ssh }) => `${ip}:${ssh}`)).size, requests)
  for (const vm of vms) assert.deepEqual(vm.labels, labels, vm.name)
  await eventually(() => assert.equal(rig.onDisk(), requests), timeoutMs)
  await Promise.all(vms.map(({ name }) => rig.call('DELETE', `${inNamespace}/vms/${name}`)))
  await eventually(async () => {
    assert.deepEqual(await list(), [])
    assert.equal(rig.onDisk(), 0)
    const nodes: { allocatableCpu: number; availableCpu: number }[] = (await rig.call('GET', `${inNamespace}/nodes`))
      .body.items
    for (const node of nodes) assert.equal(node.availableCpu, node.allocatableCpu)
  }, timeoutMs)
}

const stores = [
  ['SQLite', ['a']],
  ['etcd', ['a', 'b']],
] as const

for (const [store, servers] of stores)
  describe(`pools under kill -9, on ${store}`, () => {
    let rig: Rig | undefined
    let etcd: Awaited<ReturnType<typeof startEtcd>> | undefined
    before(async () => {
      if (store === 'etcd') etcd = await startEtcd()
      rig = await Rig.start(servers, etcd && `etcd://${new URL(etcd.urls[0] ?? '').host}/pools`)
      const config = { name: 'small', image: 'empty', cpu: 1, memory: 0.5 }
      assert.equal((await rig.call('POST', `${inNamespace}/vmconfigs`, config)).status, 201)
      const pool = { name: 'warm', config: 'small', minIdle: slots, maxIdle: slots, paused: true }
      assert.equal((await rig.call('POST', `${inNamespace}/pools`, pool)).status, 201)
    })
    after(async () => {
      await rig?.[Symbol.asyncDispose]()
      await etcd?.end()
    })

    for (const [round, fault] of faults.entries())
      it(`200 requests on 20 warm VMs are 20 hits on ${store}, whatever dies: ${fault}`, async () => {
        assert.ok(rig)
        await run(rig, round, fault)
      })
  })
