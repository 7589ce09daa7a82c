// A VM with a real disk on a node, a stand-in for the server, and a model of the disk's content. Captures are restored
// from what the server received and compared byte for byte.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Agent, startAgent } from '../../../src/agent/agent.ts'
import type { DesiredVm } from '../../../src/api/nodes/agent.ts'
import type { ContentSource } from '../../../src/images/content/content.ts'
import { decodeManifest } from '../../../src/images/format/manifest.ts'
import { restoreAttachment, restoreDisk } from '../../../src/images/pack/restore.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { diskRecipe, type GuestWrite, layeredDriver, writeAsGuest } from '../stand-ins/layered-driver.ts'
import { AgentServer } from './agent-server.ts'

const block = 65_536
const diskBytes = 40 * block
const program = path.resolve(import.meta.dirname, '../processes/capture-process.ts')

export class CaptureRig implements AsyncDisposable {
  readonly server: AgentServer
  readonly folder: string
  readonly base: string
  /** The expected content of each disk. */
  readonly disks = new Map<string, Buffer>()
  #agent: Agent | undefined
  #captures = 0

  private constructor(server: AgentServer, folder: string, base: string) {
    this.server = server
    this.folder = folder
    this.base = base
  }

  static async make(name = 'node'): Promise<CaptureRig> {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-capture-'))
    const base = path.join(root, 'base.raw')
    const content = Buffer.alloc(diskBytes)
    randomBytes(diskBytes / 4).copy(content, 2 * block)
    await fs.writeFile(base, content)
    const rig = new CaptureRig(await AgentServer.start(), path.join(root, name), base)
    rig.disks.set('', content)
    return rig
  }

  /** An agent in this process. */
  async start(): Promise<void> {
    this.#agent = await startAgent({
      apiUrls: [this.server.apiUrl],
      folder: this.folder,
      imageFolder: path.join(this.folder, 'images'),
      name: path.basename(this.folder),
      version: '3.0.0-test',
      driver: layeredDriver(),
      recipes: { disk: diskRecipe(this.base, diskBytes) },
      joinToken: async () => this.server.joinToken,
      log: silentLog,
    })
    await this.#agent.ready
  }

  async stop(): Promise<void> {
    await this.#agent?.stop()
    this.#agent = undefined
  }

  /** An agent process that can be killed. */
  spawn(environment: Record<string, string> = {}): ChildProcess {
    return spawn(
      process.execPath,
      [program, this.server.apiUrl, this.server.joinToken, this.folder, this.base, String(diskBytes)],
      {
        env: { ...process.env, SVC3_TEST: '1', ...environment },
        stdio: 'inherit',
      },
    )
  }

  vmFolder(uid: string): string {
    return path.join(this.folder, 'vms', uid)
  }

  async deploy(uid: string, from: { content?: string; like?: string } = {}): Promise<void> {
    const image =
      from.content === undefined ? { name: 'disk', recipe: 'disk' } : { name: 'saved', content: from.content }
    const report = await this.server.fulfilled(this.server.want({ uid, image }))
    assert.equal(report.power, 'running', report.problem)
    this.disks.set(uid, Buffer.from(this.disks.get(from.like ?? '') ?? Buffer.alloc(0)))
  }

  /** Random writes of a guest: data, zeros, single sectors. Returns how much of the disk they touch, in whole blocks. */
  async write(uid: string, random: () => number = Math.random): Promise<number> {
    const disk = this.disks.get(uid)
    assert.ok(disk)
    const writes = Array.from({ length: 1 + Math.floor(random() * 4) }, (): GuestWrite => {
      const sector = random() < 0.4 ? 512 : block
      const at = Math.floor((random() * diskBytes) / sector) * sector
      const most = Math.min(diskBytes - at, sector * (1 + Math.floor(random() * 6)))
      return { offset: at, bytes: random() < 0.3 ? { zeros: most } : randomBytes(most) }
    })
    await writeAsGuest(this.vmFolder(uid), writes)
    for (const { offset, bytes } of writes)
      if (Buffer.isBuffer(bytes)) bytes.copy(disk, offset)
      else disk.fill(0, offset, offset + bytes.zeros)
    const blocks = writes.map(({ offset, bytes }) => {
      const end = offset + (Buffer.isBuffer(bytes) ? bytes.length : bytes.zeros)
      return Math.ceil(end / block) - Math.floor(offset / block)
    })
    return blocks.reduce((sum, count) => sum + count * block, 0)
  }

  /** Tells the node to capture a VM; the desired state is fulfilled when it is frozen. */
  capture(uid: string, kind: 'save' | 'commit' = 'save'): { readonly id: string; readonly desired: DesiredVm } {
    const id = `capture-${++this.#captures}`
    const captures = [...(this.server.desired.get(uid)?.captures ?? []), { id, kind, withMemory: true }]
    return { id, desired: this.server.want({ uid, captures }) }
  }

  /** Checks that the capture has this disk and the memory saved with it. Returns the digest. */
  async check(id: string, disk: Buffer): Promise<string> {
    const { content, problem } = await this.server.outcome(id)
    assert.ok(content !== undefined, problem)
    const source: ContentSource = { read: async (digest) => Buffer.from(this.server.blobs.get(digest) ?? []) }
    const manifest = decodeManifest(await source.read(content, 0), content)
    const target = await fs.mkdtemp(path.join(path.dirname(this.folder), 'check-'))
    await restoreDisk(manifest, source, path.join(target, 'disk'))
    assert.ok((await fs.readFile(path.join(target, 'disk'))).equals(disk), `${id} is not what was on the disk`)
    assert.ok(manifest.memory)
    await restoreAttachment(manifest.memory.state, source, path.join(target, 'memory'))
    assert.equal(await fs.readFile(path.join(target, 'memory'), 'utf8'), `memory of ${id} `.repeat(20_000))
    await fs.rm(target, { recursive: true })
    return content
  }

  /** Files of captures left beside the VM. */
  async left(): Promise<string[]> {
    const names = async (folder: string): Promise<string[]> => fs.readdir(folder).catch(() => [])
    const states = await names(path.join(this.folder, 'captures'))
    const unfinished = await names(path.join(this.folder, 'images', 'content', 'unfinished'))
    const memories = (await fs.readdir(path.join(this.folder, 'vms'), { recursive: true })).filter((name) =>
      name.endsWith('.memory'),
    )
    return [...states, ...unfinished, ...memories]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.server[Symbol.asyncDispose]()
    await fs.rm(path.dirname(this.folder), { recursive: true, force: true })
  }
}
