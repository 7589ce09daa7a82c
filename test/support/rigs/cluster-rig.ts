// A server and a node as killable processes, with VMs on real disks and a model of their content. The server is reached
// through a proxy, so that its address stays the same.
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
/** Longer than anything here takes on a slow machine. */
const timeoutMs = 150_000

export class ClusterRig implements AsyncDisposable {
  readonly root: string
  readonly data: string
  readonly architecture: 'amd64' | 'arm64'
  /** The expected content of each disk, and of each uploaded image. */
  readonly disks = new Map<string, Buffer>()
  #proxy: TcpProxy | undefined
  #server: DevServer | undefined
  #agent: ChildProcess | undefined
  #joinToken = ''
  /** Where the agent writes its log, if set. */
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

  /** Starts the server, which dies at the fail point if given, perhaps before it is ready. */
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
    // Connections wait for the next server instead of reaching another program on that port.
    void this.#server.ended.then(() => this.#proxy?.aim('none'))
  }

  async restart(point?: string): Promise<void> {
    await this.server.kill('SIGTERM')
    await this.start(point)
  }

  /** Waits until the server has died at its fail point, then starts it again. */
  async died(next?: string): Promise<void> {
    if (!this.#hasDied) assert.deepEqual(await this.server.ended, { code: null, signal: 'SIGKILL' })
    await this.start(next)
  }

  /** Starts the node, which dies at the fail point if given. */
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

  /** Fails unless the response is successful. `url` is inside the namespace. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async call(method: string, url: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
    const answer = await this.server.call(method, namespace + url, body, headers)
    assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** Undefined without a response, as from a server that dies. */
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

  /** Computed without a server, which may be about to die. */
  vmFolder(name: string): string {
    return path.join(this.root, 'node', 'vms', this.#uids.get(name) ?? assert.fail())
  }

  /** The content of the disk from which the node starts VMs of this image. */
  imageOnNode(digest: string): Promise<Buffer> {
    return fs.readFile(path.join(this.root, 'node', 'images', digest.replace(':', '-'), 'disk.raw'))
  }

  /** Random writes of a guest: data, zeros, single sectors. Returns the content of the disk. */
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

  /** The VM runs, and nothing of it is being transferred. */
  async isAtRest(name: string): Promise<void> {
    await eventually(async () => {
      const { powerState, operation } = await this.vm(name)
      assert.deepEqual([powerState, operation], ['running', undefined])
      assert.deepEqual(await this.leftOnNode(), [])
    }, timeoutMs)
  }

  /** Files of captures left on the node. */
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

  /** A collection leaves all content of these images and nothing else. Restarts the server. */
  async hasOnly(digests: readonly (string | undefined)[]): Promise<void> {
    await age(this.content)
    // The server collects at its start.
    await this.restart()
    await this.comesToHave(digests)
  }

  /** A running collection leaves this. */
  async comesToHave(digests: readonly (string | undefined)[]): Promise<void> {
    const images = digests.filter((digest) => digest !== undefined)
    await eventually(async () => {
      assert.deepEqual(await strays(this.content, images), { left: [], lost: [] })
    }, timeoutMs)
    for (const folder of ['uploads', 'partial']) {
      const files = await fs.readdir(path.join(this.data, folder))
      // Notes of uploads stay for clients that did not receive the result.
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
