// Several servers on one etcd, each a process that can be killed and paused, with pretended agents in this process.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { type Agent, type AgentOptions, startAgent } from '../../../src/agent/agent.ts'
import { SimulatedDriver } from '../../../src/drivers/simulated.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { makeFolder } from './dev-server.ts'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import { endService } from './leftovers.ts'

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any
}

export interface ServerProcess {
  readonly apiUrl: string
  /** The port of the Kubernetes API, if requested. */
  readonly kubernetesUrl?: string
  readonly token: string
  readonly joinToken: string
  readonly child: ChildProcess
  call(method: string, where: string, body?: object, headers?: Record<string, string>): Promise<Answer>
  kill(signal?: NodeJS.Signals): Promise<void>
}

interface ServersOptions {
  readonly members?: number
  /** On disk, as in production, for measurements. */
  readonly isDurable?: boolean
  readonly logLevel?: string
  /** With the port of the Kubernetes API. */
  readonly isKubernetes?: boolean
}

/** An address that no other process uses, because tests listen on ports of VMs. */
const ownAddress = (): string => `127.${[...randomBytes(3)].map((byte) => 1 + (byte % 250)).join('.')}`

const program = path.join(import.meta.dirname, 'server-process.ts')

/** Default: a free port of the loopback. */
interface ServerPlace {
  readonly host?: string
  readonly port?: number
}

interface ServerProcessOptions extends ServerPlace {
  readonly dataFolder: string
  /** Default: SQLite in the data folder. */
  readonly storeAddress?: string
  readonly masterKey: string
  /** Where other servers reach it, if different from where it listens. */
  readonly internalUrl?: string
  /** For Node, before the program. */
  readonly nodeArgs?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly logLevel?: string | undefined
  readonly isKubernetes?: boolean | undefined
  /** It may fail to start and is started again. */
  readonly isQuiet?: boolean
  /** Called when it runs, even if it is not ready, with a function that ends it. */
  readonly started?: (kill: () => Promise<void>) => void
}

/** Started again on the same data folder, it is the same server. */
export async function startServerProcess(options: ServerProcessOptions): Promise<ServerProcess> {
  const {
    dataFolder,
    storeAddress,
    masterKey,
    internalUrl,
    host,
    port,
    nodeArgs = [],
    env = {},
    logLevel = 'silent',
    isKubernetes = false,
  } = options
  await fs.mkdir(dataFolder, { recursive: true })
  await fs.writeFile(path.join(dataFolder, 'config.json'), JSON.stringify({ logLevel }))
  const kubernetes = isKubernetes ? { host: '127.0.0.1', port: 0 } : undefined
  const given = JSON.stringify({ dataFolder, storeAddress, masterKey, internalUrl, host, port, kubernetes })
  const child = spawn(process.execPath, [...nodeArgs, program, given], {
    stdio: ['pipe', 'pipe', options.isQuiet ? 'ignore' : 'inherit'],
    env: { ...process.env, ...env },
  })
  endService(child)
  const exited = once(child, 'exit')
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    if (signal === 'SIGKILL') child.kill('SIGCONT')
    child.kill(signal)
    await exited
  }
  options.started?.(() => kill())
  const line = await Promise.race([
    once(createInterface(child.stdout), 'line').then(([text]) => String(text)),
    exited.then(([code]) => Promise.reject(new Error(`server ${path.basename(dataFolder)} ended with ${code}`))),
  ])
  const said = JSON.parse(line) as Pick<ServerProcess, 'apiUrl' | 'kubernetesUrl' | 'token' | 'joinToken'>
  const { apiUrl, token } = said
  const call: ServerProcess['call'] = async (method, where, body, headers = {}) => {
    const response = await fetch(`${apiUrl}/api/v1${where}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, body: isJson ? JSON.parse(text) : text }
  }
  return { ...said, child, call, kill }
}

export class ServersRig implements AsyncDisposable {
  readonly folder: string
  readonly etcd: EtcdCluster
  readonly storeAddress: string
  readonly masterKey = randomBytes(32).toString('base64')
  readonly #options: ServersOptions
  readonly #ends: (() => Promise<unknown>)[] = []
  #nodes = 0

  private constructor(folder: string, etcd: EtcdCluster, options: ServersOptions) {
    this.folder = folder
    this.etcd = etcd
    this.#options = options
    this.storeAddress = `etcd://${etcd.urls.map((url) => new URL(url).host).join(',')}/servers`
  }

  static async start(options: ServersOptions = {}): Promise<ServersRig> {
    const { members: size = 1, isDurable = false } = options
    return new ServersRig(await makeFolder(), await startEtcd({ size, isDurable }), options)
  }

  /** The same name means the same data folder. `nodeArgs` are for Node. */
  async server(name: string, nodeArgs: readonly string[] = [], place: ServerPlace = {}): Promise<ServerProcess> {
    const { storeAddress, masterKey } = this
    return startServerProcess({
      dataFolder: path.join(this.folder, name),
      storeAddress,
      masterKey,
      nodeArgs,
      ...place,
      logLevel: this.#options.logLevel,
      isKubernetes: this.#options.isKubernetes,
      started: (kill) => this.#ends.push(kill),
    })
  }

  /** A node that tries these addresses in order. It has room for one VM of two cores. */
  async agent(apiUrls: readonly string[], joinToken: string, options: Partial<AgentOptions> = {}): Promise<Agent> {
    const name = options.name ?? `node-${++this.#nodes}`
    const agent = await startAgent({
      apiUrls,
      folder: path.join(this.folder, name),
      imageFolder: path.join(this.folder, `${name}-images`),
      name,
      version: '3.0.0-test',
      driver: new SimulatedDriver({ architectures: ['amd64'] }),
      capacity: { architecture: 'amd64', ip: ownAddress(), cpu: 2, memoryMiB: 4_096 },
      joinToken: async () => joinToken,
      log: silentLog,
      ...options,
    })
    this.#ends.push(() => agent.stop())
    return agent
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends.toReversed()) await end()
    await this.etcd.end()
    await fs.rm(this.folder, { recursive: true, force: true })
  }
}
