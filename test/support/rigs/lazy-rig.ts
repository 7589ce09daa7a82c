// A cluster for images that arrive while VMs run on them: a server, agent processes, an image with random bytes, and a
// slow network.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { type Architecture, openGuest, type SshPlace, seedTiny } from '../guests/guest.ts'
import { type DevServer, makeFolder, program, startDev, svc3 } from '../processes/dev-server.ts'
import { endService } from '../processes/leftovers.ts'
import { type SlowLink, startSlowLink } from '../stand-ins/slow-link.ts'
import { eventually } from '../tools/eventually.ts'
import { freePort } from '../tools/free-port.ts'

export const namespace = '/api/v1/namespaces/svc-default'
export const vms = `${namespace}/vms`
export const mib = 2 ** 20
const files = '/data0 /data1 /data2 /data3'
/** Reads all of it, bypassing the guest's page cache. */
export const readAll = `echo 3 >/proc/sys/vm/drop_caches; sha256sum ${files}`

interface AgentOptions {
  /** Only the first time. */
  readonly apiUrl?: string
  readonly words?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A command that starts the agent. */
  readonly before?: readonly string[]
}

interface Deployed {
  readonly image?: string
  readonly node?: string
  readonly cold?: boolean
}

export class LazyRig implements AsyncDisposable {
  server!: DevServer
  /** Between the server and agents that use it. */
  link!: SlowLink
  /** The checksums that `readAll` prints. */
  sums = ''
  /** The boot time of a guest on this machine with a complete image. */
  bootMs = 0
  /** The agents' log. */
  log = ''
  readonly folder: string
  readonly #architecture: Architecture
  #listen: string | undefined
  readonly #agents = new Map<string, ChildProcess>()
  readonly #deployed = new Set<string>()

  constructor(folder: string, architecture: Architecture) {
    this.folder = folder
    this.#architecture = architecture
  }

  /** With the image `big`, made on the node `maker`, which is stopped; `making` still has its VM. */
  static async make(
    dataMib: number,
    architecture: Architecture = 'amd64',
    making?: (rig: LazyRig) => Promise<void>,
  ): Promise<LazyRig> {
    const rig = new LazyRig(await makeFolder(), architecture)
    await seedTiny(path.join(rig.dataOf('maker'), 'images'), [architecture])
    await rig.startServer()
    const { hostname, port } = new URL(rig.server.apiUrl)
    rig.link = await startSlowLink({ host: hostname, port: Number(port) }, Infinity)
    await rig.startAgent('maker', { apiUrl: rig.server.apiUrl, words: ['--peer-port', '0'] })
    const made = await rig.deploy('made', { image: `tiny-${architecture}`, node: 'maker' })
    const madeMs = performance.now()
    using guest = await openGuest(made, { user: 'root' })
    rig.bootMs = performance.now() - madeMs
    for (const file of files.split(' '))
      await guest.run(`dd if=/dev/urandom of=${file} bs=1M count=${dataMib / 4} 2>/dev/null; sync`, 240_000)
    rig.sums = await guest.run(`sha256sum ${files}`, 120_000)
    await rig.call('POST', `${vms}/made/save`, { imageName: 'big' })
    await rig.isReady('big')
    await making?.(rig)
    await rig.delete('made')
    await rig.kill('maker', 'SIGTERM')
    return rig
  }

  get slowUrl(): string {
    return this.server.apiUrl.replace(/:\d+$/, `:${this.link.port}`)
  }

  dataOf(node: string): string {
    return path.join(this.folder, node)
  }

  async startServer(): Promise<void> {
    this.#listen ??= `127.0.0.1:${await freePort()}`
    this.server = await startDev(path.join(this.folder, 'server'), {
      listen: this.#listen,
      args: ['--nodes', 'amd64=0,arm64=0'],
    })
  }

  svc3(words: string[]): ReturnType<typeof svc3> {
    return svc3(words, { env: { SVC3_DATA: path.join(this.folder, 'server') } })
  }

  async startAgent(name: string, { apiUrl, words = [], env = {}, before = [] }: AgentOptions = {}): Promise<void> {
    const { stdout } = await this.svc3(['node', 'join-token'])
    const known = ['agent', '--name', name, '--architecture', this.#architecture, '--data', this.dataOf(name), ...words]
    const first = apiUrl === undefined ? [] : ['--api-url', apiUrl, '--join-token-stdin']
    const [command = program, ...rest] = [...before, program, ...known, ...first]
    const child = spawn(command, rest, { stdio: ['pipe', 'ignore', 'pipe'], env: { ...process.env, ...env } })
    endService(child)
    child.stderr.on('data', (piece: Buffer) => {
      this.log += piece.toString()
    })
    child.stdin.on('error', () => undefined)
    child.stdin.end(apiUrl === undefined ? '' : stdout.trim())
    this.#agents.set(name, child)
    await eventually(async () => {
      const { body } = await this.server.call('GET', `${namespace}/nodes`)
      const found = (body.items as { name: string; phase: string }[]).find((node) => node.name === name)
      assert.equal(found?.phase, 'READY', this.log.slice(-2_000))
    }, 60_000)
  }

  pidOf(agent: string): number {
    return this.#agents.get(agent)?.pid ?? 0
  }

  async kill(agent: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#agents.get(agent)
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }

  /** The agent died by itself. */
  async died(agent: string): Promise<void> {
    await eventually(() => assert.equal(this.#agents.get(agent)?.signalCode, 'SIGKILL'), 60_000)
  }

  async call(...call: Parameters<DevServer['call']>): Promise<Record<string, unknown>> {
    const { status, body } = await this.server.call(...call)
    assert.ok(status < 300, `${call[0]} ${call[1]}: ${status} ${String(body.message)}`)
    return body as never
  }

  async show(name: string): Promise<Vm> {
    return (await this.call('GET', `${vms}/${name}`)) as never
  }

  /** The condition that reports how much of its image has arrived. */
  async imageReady(name: string): Promise<Vm['conditions'][number] | undefined> {
    return (await this.show(name)).conditions.find(({ type }) => type === 'ImageReady')
  }

  async deploy(name: string, { image = 'big', node = 'empty', cold = true }: Deployed = {}): Promise<SshPlace> {
    const shape = { image, name, cpu: 1, memory: 0.3, cold, node, imageStart: 'lazy' }
    const deployed = await this.call('POST', vms, shape)
    this.#deployed.add(name)
    return deployed as never
  }

  async delete(name: string): Promise<void> {
    this.#deployed.delete(name)
    await this.call('DELETE', `${vms}/${name}`)
  }

  async isReady(image: string): Promise<void> {
    await eventually(async () => {
      const body = await this.call('GET', `${namespace}/images/${image}`)
      assert.equal(body.state, 'Ready', JSON.stringify(body))
    }, 240_000)
  }

  /** Deletes all VMs and the node's copies of images. */
  async empty(node: string, options: AgentOptions = {}): Promise<void> {
    for (const name of this.#deployed) await this.delete(name)
    await this.kill(node)
    await fs.rm(path.join(this.dataOf(node), 'images'), { recursive: true, force: true })
    await this.startAgent(node, options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#deployed) await this.server.call('DELETE', `${vms}/${name}`).catch(() => undefined)
    for (const name of this.#agents.keys()) await this.kill(name)
    await this.link[Symbol.asyncDispose]()
    await this.server.kill('SIGTERM')
    await fs.rm(this.folder, { recursive: true, force: true })
  }
}
