// Runner pools on three servers with one etcd, each a process that is killed and restarted, with simulated guests and a
// stand-in for GitHub in this process, which outlive them.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startAgent } from '../../../src/agent/agent.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { makeFolder } from '../processes/dev-server.ts'
import { startEtcd } from '../processes/etcd.ts'
import { type ServerProcess, startServerProcess } from '../processes/servers.ts'
import { Undying } from '../processes/undying.ts'
import { GitHubStandIn } from '../stand-ins/github.ts'
import { type GuestBehaviour, RunnerGuests } from '../stand-ins/runner-guests.ts'
import { startTcpProxy, type TcpProxy } from '../stand-ins/tcp-proxy.ts'
import { eventually } from '../tools/eventually.ts'
import { simulatedVms } from '../tools/simulated-vms.ts'

const inNamespace = '/namespaces/svc-default'
const nodes = ['node-1', 'node-2']

interface Server {
  readonly proxy: TcpProxy
  readonly process: Undying
  current: ServerProcess | undefined
}

interface Place {
  readonly folder: string
  readonly store: Store
  readonly slots: number
  readonly cleanup: AsyncDisposableStack
}

export class RunnerCluster implements AsyncDisposable {
  readonly github: GitHubStandIn
  readonly guests: GuestBehaviour = { jobMs: 1_000, mute: 0, broken: 0 }
  readonly #folder: string
  readonly #store: Store
  readonly #slots: number
  readonly #servers: Server[] = []
  readonly #cleanup: AsyncDisposableStack

  private constructor(place: Pick<RunnerCluster, 'github'> & Place) {
    this.github = place.github
    this.#folder = place.folder
    this.#store = place.store
    this.#slots = place.slots
    this.#cleanup = place.cleanup
  }

  /** With room for `slots` VMs, on two nodes. */
  static async start(slots: number): Promise<RunnerCluster> {
    const cleanup = new AsyncDisposableStack()
    try {
      const folder = await makeFolder()
      cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
      const etcd = cleanup.use(await startEtcd())
      const storeAddress = `etcd://${new URL(etcd.urls[0] ?? '').host}/runners`
      const store = await openStore(storeAddress)
      cleanup.defer(() => store.close())
      const github = cleanup.use(await GitHubStandIn.start({ pollMs: 5_000 }))
      const cluster = new RunnerCluster({ folder, github, store, slots, cleanup })
      const masterKey = randomBytes(32).toString('base64')
      for (const name of ['a', 'b', 'c']) await cluster.#serve(name, { storeAddress, masterKey })
      await cluster.#fill()
      return cluster
    } catch (error) {
      await cleanup.disposeAsync()
      throw error
    }
  }

  async #fill(): Promise<void> {
    await this.ok('POST', '/images', { name: 'empty', size: '1G' })
    for (const name of nodes) await this.#join(name)
    await this.ok('POST', '/vmconfigs', { name: 'small', image: 'empty', cpu: 1, memory: 0.5 })
    const { url } = this.github
    const credential = { token: 'ghp_standin' }
    await this.ok('POST', '/runnerpools', {
      name: 'ios',
      url,
      credential,
      config: 'small',
      max: this.#slots,
      idleFor: '10s',
    })
  }

  async #serve(name: string, place: { readonly storeAddress: string; readonly masterKey: string }): Promise<void> {
    const proxy = this.#cleanup.use(await startTcpProxy(1, { isPatient: true }))
    proxy.aim('none')
    const dataFolder = path.join(this.#folder, name)
    const env = { SVC3_TEST: '1', SVC3_FAILPOINT: `@${this.#fatal}` }
    const start = async (): Promise<ChildProcess> => {
      server.current = await startServerProcess({ dataFolder, env, isQuiet: true, ...place })
      proxy.aim(Number(new URL(server.current.apiUrl).port))
      return server.current.child
    }
    const died = (): void => {
      server.current = undefined
      // One death at a fail point is enough.
      void this.dieAt(undefined)
      proxy.aim('none')
      proxy.cut()
    }
    const server: Server = { proxy, process: new Undying(start, died), current: undefined }
    this.#servers.push(server)
    this.#cleanup.use(await server.process.start())
  }

  async #join(name: string): Promise<void> {
    const [first] = this.#servers
    const agent = await startAgent({
      apiUrls: this.#servers.map(({ proxy }) => `http://127.0.0.1:${proxy.port}`),
      folder: path.join(this.#folder, name),
      imageFolder: path.join(this.#folder, `${name}-images`),
      name,
      version: '3.0.0-test',
      driver: new RunnerGuests(this.github, this.guests, { architectures: ['amd64'] }),
      capacity: {
        architecture: 'amd64',
        ip: `127.0.8.${nodes.indexOf(name) + 1}`,
        cpu: this.#slots / nodes.length,
        memoryMiB: 65_536,
      },
      joinToken: async () => first?.current?.joinToken ?? '',
      log: silentLog,
    })
    this.#cleanup.defer(() => agent.stop())
    await agent.ready
  }

  get #fatal(): string {
    return path.join(this.#folder, 'fatal')
  }

  /** The server that reaches this fail point dies there. */
  async dieAt(point: string | undefined): Promise<void> {
    if (point === undefined) await fs.rm(this.#fatal, { force: true })
    else await fs.writeFile(this.#fatal, point)
  }

  get deaths(): number {
    return this.#servers.reduce((sum, { process }) => sum + process.deaths, 0)
  }

  /** The leader, while it runs. */
  async leader(): Promise<ServerProcess | undefined> {
    const record = (await this.#store.get('/leadership/controllers'))?.value as { holder?: string } | undefined
    return this.#servers
      .flatMap(({ current }) => current ?? [])
      .find(({ apiUrl }) => record?.holder?.startsWith(`${new URL(apiUrl).host}/`))
  }

  /** Kills each leader after it has received jobs for `everyMs`. */
  async killLeaders(everyMs: number, signal: AbortSignal): Promise<number> {
    let kills = 0
    while (!signal.aborted) {
      const leader = this.github.isHeard ? await this.leader() : undefined
      if (leader) {
        await sleep(everyMs, undefined, { signal }).catch(() => undefined)
        if (signal.aborted) return kills
        await leader.kill()
        kills += 1
        // Until its session lapses, a client seems to be connected.
        await eventually(() => assert.ok(!this.github.isHeard), 30_000)
      }
      await sleep(100)
    }
    return kills
  }

  /** Retried until any server answers. */
  async call(method: string, where: string, body?: object) {
    for (;;) {
      const [server] = this.#servers.flatMap(({ current }) => current ?? []).toSorted(() => Math.random() - 0.5)
      const answer = await server?.call(method, where, body).catch(() => undefined)
      if (answer && answer.status < 500 && answer.status !== 429) return answer
      await sleep(50)
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async ok(method: string, where: string, body?: object): Promise<any> {
    const answer = await this.call(method, inNamespace + where, body)
    assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** What may be left of jobs: at GitHub, in records, and on nodes. */
  async leftovers(): Promise<string[]> {
    const listed = ((await this.ok('GET', '/nodes')).items ?? []) as {
      readonly name: string
      readonly allocatableCpu: number
      readonly availableCpu: number
    }[]
    return [
      ...[...this.github.runners.values()].map(({ name }) => `runner ${name}`),
      ...(await this.#store.list('/runners/')).entries.map(({ key }) => key),
      ...((await this.ok('GET', '/vms')).items as { name: string }[]).map(({ name }) => `VM ${name}`),
      ...nodes.flatMap((name) => simulatedVms(path.join(this.#folder, name))).map((uid) => `VM ${uid} on disk`),
      ...listed.filter((node) => node.availableCpu !== node.allocatableCpu).map(({ name }) => `room on ${name}`),
    ]
  }

  /**
   * Waits until all jobs have ended. Returns the longest time that a job waited while a server led and fewer runners were
   * connected than there is room for; only as many of the oldest jobs count as there is room.
   */
  async watchJobs(signal: AbortSignal): Promise<number> {
    const { jobs, runners } = this.github
    const since = new Map<string, number>()
    let longestMs = 0
    while (!signal.aborted && jobs.some(({ state }) => state !== 'completed')) {
      const connected = [...runners.values()].filter(({ status }) => status !== 'offline').length
      const waiting = jobs.filter(({ state }) => state === 'queued' || state === 'assigned')
      const beside = this.github.isHeard ? waiting.slice(0, Math.max(0, this.#slots - connected)) : []
      const names = new Set(beside.map(({ name }) => name))
      for (const name of since.keys()) if (!names.has(name)) since.delete(name)
      for (const name of names) {
        const sinceMs = since.get(name) ?? performance.now()
        since.set(name, sinceMs)
        longestMs = Math.max(longestMs, performance.now() - sinceMs)
      }
      await sleep(50)
    }
    signal.throwIfAborted()
    return longestMs
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanup.disposeAsync()
  }
}
