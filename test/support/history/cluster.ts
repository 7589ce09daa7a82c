// The service under test: one server on SQLite, or three on three etcd members, with a proxy on every connection, a
// settable clock everywhere, and processes that can be killed and paused.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { makeFolder } from '../processes/dev-server.ts'
import { type EtcdCluster, startEtcd } from '../processes/etcd.ts'
import { pauseProcess } from '../processes/pause-process.ts'
import { type ServerProcess, startServerProcess } from '../processes/servers.ts'
import { startTcpProxy, type TcpProxy } from '../stand-ins/tcp-proxy.ts'
import { eventually } from '../tools/eventually.ts'

export type StoreKind = 'sqlite' | 'etcd'

const shiftedClock = path.join(import.meta.dirname, '../processes/shifted-clock.mjs')
const timeoutMs = 60_000
const nobody = 9

export class HistoryServer {
  readonly name: string
  /** Between clients and it. */
  readonly clients: TcpProxy
  /** Between the other servers and it. */
  readonly others: TcpProxy
  /** Between it and each member of etcd. */
  readonly members: readonly TcpProxy[]
  readonly #folder: string
  readonly #masterKey: string
  /** The duration of each start. */
  readonly startsMs: number[] = []
  #process: ServerProcess | undefined
  #kill: (() => Promise<void>) | undefined

  constructor(
    name: string,
    folder: string,
    masterKey: string,
    [clients, others, ...members]: [TcpProxy, TcpProxy, ...TcpProxy[]],
  ) {
    // biome-ignore format: one line
    this.name = name
    this.clients = clients
    this.others = others
    this.members = members
    this.#folder = folder
    this.#masterKey = masterKey
  }

  get url(): string {
    return `http://127.0.0.1:${this.clients.port}`
  }

  get process(): ServerProcess {
    if (!this.#process) throw new Error(`server ${this.name} has not started`)
    return this.#process
  }

  get pid(): number {
    return this.process.child.pid ?? 0
  }

  get isAlive(): boolean {
    const { child } = this.process
    return child.exitCode === null && child.signalCode === null
  }

  async start(): Promise<void> {
    const beganMs = performance.now()
    const isShared = this.members.length > 0
    const hosts = this.members.map(({ port }) => `127.0.0.1:${port}`).join()
    const started = await startServerProcess({
      dataFolder: path.join(this.#folder, this.name),
      masterKey: this.#masterKey,
      isQuiet: true,
      nodeArgs: ['--import', shiftedClock],
      env: { CLOCK_SHIFT_FILE: this.#clockFile },
      started: (kill) => {
        this.#kill = kill
      },
      ...(isShared && {
        storeAddress: `etcd://${hosts}/history`,
        internalUrl: `https://127.0.0.1:${this.others.port}`,
      }),
    })
    this.#process = started
    this.startsMs.push(performance.now() - beganMs)
    for (const proxy of [this.clients, this.others]) {
      proxy.aim(Number(new URL(started.apiUrl).port))
      proxy.open()
    }
  }

  async kill(): Promise<void> {
    this.clients.close()
    this.others.close()
    await this.#kill?.()
  }

  pause(): void {
    if (this.isAlive) pauseProcess(this.pid)
  }

  resume(): void {
    this.process.child.kill('SIGCONT')
  }

  async shiftClock(milliseconds: number): Promise<void> {
    await fs.writeFile(this.#clockFile, String(milliseconds))
  }

  get #clockFile(): string {
    return path.join(this.#folder, `${this.name}-clock`)
  }
}

export class HistoryCluster implements AsyncDisposable {
  readonly kind: StoreKind
  readonly servers: readonly HistoryServer[]
  readonly etcd: EtcdCluster | undefined
  readonly #folder: string

  private constructor(kind: StoreKind, folder: string, etcd: EtcdCluster | undefined, servers: HistoryServer[]) {
    this.kind = kind
    this.#folder = folder
    this.etcd = etcd
    this.servers = servers
  }

  static async start(kind: StoreKind): Promise<HistoryCluster> {
    const folder = await makeFolder()
    const etcd = kind === 'etcd' ? await startEtcd({ size: 3, isCuttable: true }) : undefined
    const masterKey = randomBytes(32).toString('base64')
    const memberPorts = etcd?.urls.map((url) => Number(new URL(url).port)) ?? []
    const servers = (kind === 'etcd' ? ['s1', 's2', 's3'] : ['s1']).map(async (name) => {
      const ways = await Promise.all([nobody, nobody, ...memberPorts].map((port) => startTcpProxy(port)))
      return new HistoryServer(name, folder, masterKey, ways as [TcpProxy, TcpProxy, ...TcpProxy[]])
    })
    const cluster = new HistoryCluster(kind, folder, etcd, await Promise.all(servers))
    try {
      for (const server of cluster.servers) await server.start()
      await cluster.ready()
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  /** The token of the server that started last; every server accepts it for an hour. */
  get token(): string {
    return this.servers[0]?.process.token ?? ''
  }

  /** Every server reports ready. */
  async ready(): Promise<void> {
    for (const { url, name } of this.servers)
      await eventually(async () => {
        const { status } = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(3_000) })
        if (status !== 200) throw new Error(`${name} is not ready`)
      }, timeoutMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) {
      await server.kill()
      for (const proxy of [server.clients, server.others, ...server.members]) await proxy[Symbol.asyncDispose]()
    }
    await this.etcd?.end()
    await fs.rm(this.#folder, { recursive: true, force: true })
  }
}
