// A server and a node as processes of their own, each to be killed, with VMs whose disks are real, and a model of what must
// be on them. The server is reached through a proxy: wherever the next one listens, its address is the same.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Image } from '../../../src/api/images/images.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { type DevServer, EndedEarly, makeFolder, type Ran, startDev, svc3 } from '../processes/dev-server.ts'
import { endService } from '../processes/leftovers.ts'
import { type GuestWrite, writeAsGuest } from '../stand-ins/layered-driver.ts'
import { startTcpProxy, type TcpProxy } from '../stand-ins/tcp-proxy.ts'
import { eventually } from '../tools/eventually.ts'
import { age, type Restored, restoredFrom, strays } from './content-folder.ts'

const namespace = '/api/v1/namespaces/svc-default'
const program = path.resolve(import.meta.dirname, '../processes/capture-process.ts')
const block = 65_536
/** Whatever machine this is on: nothing here is waited for longer than it takes. */
const timeoutMs = 150_000

export class ClusterRig implements AsyncDisposable {
  readonly root: string
  readonly data: string
  readonly architecture: 'amd64' | 'arm64'
  /** What is on the disk of each VM, and of each image that was uploaded. */
  readonly disks = new Map<string, Buffer>()
  #proxy: TcpProxy | undefined
  #server: DevServer | undefined
  #agent: ChildProcess | undefined
  #joinToken = ''
  /** Where the agent writes its log, for tests that want to know. */
  agentLog: string | undefined
  #hasDied = false
  readonly #uids = new Map<string, string>()

  private constructor(root: string, architecture: 'amd64' | 'arm64') {
    this.root = root
    this.architecture = architecture
    this.data = path.join(root, 'server')
  }

  static async make(architecture: 'amd64' | 'arm64', settings?: object): Promise<ClusterRig> {
    const rig = new ClusterRig(await makeFolder(), architecture)
    await fs.mkdir(rig.data)
    if (settings) await fs.writeFile(path.join(rig.data, 'config.json'), JSON.stringify(settings))
    await rig.start()
    return rig
  }

  get server(): DevServer {
    assert.ok(this.#server)
    return this.#server
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${this.#proxy?.port}`
  }

  get content(): string {
    return path.join(this.data, 'content')
  }

  /** The server, to die at a point where one is named; it may come to that before it is ready. */
  async start(point?: string): Promise<void> {
    const env = point === undefined ? {} : { SVC3_TEST: '1', SVC3_FAILPOINT: point }
    const args = ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=0']
    this.#hasDied = false
    try {
      this.#server = await startDev(this.data, { args, env })
    } catch (error) {
      if (point === undefined || !(error instanceof EndedEarly) || error.signal !== 'SIGKILL') throw error
      this.#hasDied = true
      return
    }
    const port = Number(new URL(this.#server.apiUrl).port)
    this.#proxy ??= await startTcpProxy(port, { isPatient: true })
    this.#proxy.aim(port)
    // Whoever comes now waits for the next one, and does not meet who gets that port.
    void this.#server.ended.then(() => this.#proxy?.aim('nobody'))
  }

  async restart(point?: string): Promise<void> {
    await this.server.kill('SIGTERM')
    await this.start(point)
  }

  /** The server has died at the point that it was started with, and is started again, to die at the next one. */
  async died(next?: string): Promise<void> {
    if (!this.#hasDied) assert.deepEqual(await this.server.ended, { code: null, signal: 'SIGKILL' })
    await this.start(next)
  }

  /** The node, to die at a point where one is named. */
  async startAgent(point?: string): Promise<ChildProcess> {
    this.#joinToken ||= String((await this.call('POST', '/jointokens', {})).token)
    const words = [program, this.apiUrl, this.#joinToken, path.join(this.root, 'node'), '', '0', this.architecture]
    this.#agent = spawn(process.execPath, [...words, ...(this.agentLog === undefined ? [] : [this.agentLog])], {
      env: {
        ...process.env,
        SVC3_TEST: '1',
        ...(point !== undefined && { SVC3_FAILPOINT: point }),
      },
      stdio: 'inherit',
    })
    endService(this.#agent)
    return this.#agent
  }

  async agentDied(next?: string): Promise<void> {
    const { exitCode, signalCode } = this.#agent ?? assert.fail()
    if (exitCode === null && signalCode === null) await once(this.#agent ?? assert.fail(), 'exit')
    assert.equal(this.#agent?.signalCode, 'SIGKILL')
    await this.startAgent(next)
  }

  async killAgent(): Promise<void> {
    if (!this.#agent || this.#agent.exitCode !== null || this.#agent.signalCode !== null) return
    const ended = once(this.#agent, 'exit')
    this.#agent.kill('SIGKILL')
    await ended
  }

  /** What succeeds; `url` is in the namespace. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async call(method: string, url: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
    const answer = await this.server.call(method, namespace + url, body, headers)
    assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** Undefined: there is no answer, as of a server that dies meanwhile. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async ask(method: string, url: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
    if (this.#hasDied) return undefined
    const answer = await this.server.call(method, namespace + url, body, headers).catch(() => undefined)
    if (answer) assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
    return answer?.body
  }

  svc3(...words: string[]): Promise<Ran> {
    const env = { SVC3_API_URL: this.apiUrl, SVC3_TOKEN: this.server.token }
    return svc3(words, { env, cwd: this.root, timeoutMs: 300_000 })
  }

  async upload(name: string, disk: Buffer): Promise<string> {
    const answer = await fetch(
      `${this.server.apiUrl}${namespace}/upload/image?name=${name}&type=${this.architecture}`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${this.server.token}`, 'content-type': 'application/octet-stream' },
        body: new Uint8Array(disk),
      },
    )
    const image = (await answer.json()) as Image
    assert.equal(answer.status, 201, JSON.stringify(image))
    this.disks.set(name, disk)
    return image.checksum ?? ''
  }

  async deploy(name: string, image: string, like = image): Promise<void> {
    await eventually(async () => assert.equal((await this.call('GET', '/nodes')).items[0]?.phase, 'READY'), timeoutMs)
    const { uid } = await this.call('POST', '/vms', { name, image, cpu: 1, memory: 0.5 })
    this.#uids.set(name, uid)
    this.disks.set(name, Buffer.from(this.disks.get(like) ?? assert.fail()))
  }

  vm(name: string): Promise<Vm> {
    return this.call('GET', `/vms/${name}`)
  }

  image(name: string): Promise<Image> {
    return this.call('GET', `/images/${name}`)
  }

  /** Known without asking a server, which may be about to die. */
  vmFolder(name: string): string {
    return path.join(this.root, 'node', 'vms', this.#uids.get(name) ?? assert.fail())
  }

  /** The disk that the node starts VMs of this image from. */
  imageOnNode(digest: string): Promise<Buffer> {
    return fs.readFile(path.join(this.root, 'node', 'images', digest.replace(':', '-'), 'disk.raw'))
  }

  /** Some writes of a guest, anywhere: data, zeros, single sectors. Returns what is on the disk now. */
  async write(name: string, random: () => number = Math.random): Promise<Buffer> {
    const disk = this.disks.get(name) ?? assert.fail()
    const writes = Array.from({ length: 1 + Math.floor(random() * 4) }, (): GuestWrite => {
      const sector = random() < 0.4 ? 512 : block
      const at = Math.floor((random() * disk.length) / sector) * sector
      const most = Math.min(disk.length - at, sector * (1 + Math.floor(random() * 6)))
      return { offset: at, bytes: random() < 0.3 ? { zeros: most } : randomBytes(most) }
    })
    await writeAsGuest(this.vmFolder(name), writes)
    for (const { offset, bytes } of writes)
      if (Buffer.isBuffer(bytes)) bytes.copy(disk, offset)
      else disk.fill(0, offset, offset + bytes.zeros)
    return Buffer.from(disk)
  }

  async isIn(name: string, state: Image['state']): Promise<Image> {
    return eventually(async () => {
      const image = await this.image(name)
      assert.equal(image.state, state, JSON.stringify(image))
      return image
    }, timeoutMs)
  }

  /** Nothing is on its way from this VM any more, and it runs. */
  async isAtRest(name: string): Promise<void> {
    await eventually(async () => {
      const { powerState, operation } = await this.vm(name)
      assert.deepEqual([powerState, operation], ['running', undefined])
      assert.deepEqual(await this.leftOnNode(), [])
    }, timeoutMs)
  }

  /** What captures have on the node besides the VM. */
  async leftOnNode(): Promise<string[]> {
    const names = async (folder: string): Promise<string[]> =>
      fs.readdir(path.join(this.root, 'node', folder), { recursive: true }).catch(() => [])
    const states = await names('captures')
    const unfinished = await names('images/content/unfinished')
    return [...states, ...unfinished, ...(await names('vms')).filter((name) => name.endsWith('.memory'))]
  }

  restored(digest: string | undefined): Promise<Restored> {
    return restoredFrom(this.content, digest ?? '')
  }

  /** A collection leaves what these images need, all of it, and nothing else. Starts the server anew. */
  async hasOnly(digests: readonly (string | undefined)[]): Promise<void> {
    await age(this.content)
    // It looks when it starts.
    await this.restart()
    await this.comesToHave(digests)
  }

  /** A collection that is under way leaves this. */
  async comesToHave(digests: readonly (string | undefined)[]): Promise<void> {
    const images = digests.filter((digest) => digest !== undefined)
    await eventually(async () => {
      assert.deepEqual(await strays(this.content, images), { left: [], lost: [] })
    }, timeoutMs)
    for (const folder of ['uploads', 'partial']) {
      const files = await fs.readdir(path.join(this.data, folder))
      // Notes of uploads are for those who did not hear of their end.
      const left = files.filter((name) => !name.endsWith('.json'))
      assert.deepEqual(left, [], folder)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAgent()
    await this.server.kill('SIGKILL')
    await this.#proxy?.[Symbol.asyncDispose]()
    await fs.rm(this.root, { recursive: true, force: true })
  }
}
