// A service with pools in this process: server, controllers, and agents with simulated guests.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Agent, startAgent } from '../../../src/agent/agent.ts'
import { fillPools } from '../../../src/controllers/scheduling/fill-pools.ts'
import { Placements } from '../../../src/controllers/scheduling/placements.ts'
import { scheduleVms } from '../../../src/controllers/scheduling/schedule-vms.ts'
import { SimulatedDriver, type SimulatedKnobs } from '../../../src/drivers/simulated.ts'
import { silentLog } from '../../../src/platform/log.ts'
import type { Loop } from '../../../src/platform/loop.ts'
import { addImage } from '../stand-ins/node.ts'
import { eventually } from '../tools/eventually.ts'
import { simulatedVms } from '../tools/simulated-vms.ts'
import { startService, type TestService } from './service.ts'

const base = '/api/v1/namespaces/svc-default'
const small = { name: 'small', image: 'tiny-amd64', cpu: 1, memory: 0.5 }

export class PoolRig implements AsyncDisposable {
  readonly service: TestService
  readonly folder: string
  readonly agents: Agent[] = []
  readonly loops: Loop[] = []
  #token = ''
  #unsubscribe: (() => void) | undefined

  private constructor(service: TestService, folder: string) {
    this.service = service
    this.folder = folder
  }

  static async start(nodes: readonly { readonly cpu: number; readonly knobs?: SimulatedKnobs }[]): Promise<PoolRig> {
    const service = await startService({ logLevel: 'error' })
    const rig = new PoolRig(service, await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-pools-')))
    // Agents sign with the real clock.
    service.clock.nowMs = Date.now()
    rig.#token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
    await service.listen()
    const { services } = service
    const placements = new Placements(services, services.presence)
    for (const start of [scheduleVms, fillPools]) rig.loops.push(start(services, placements))
    rig.#unsubscribe = services.presence.subscribe(() => rig.nudge())
    for (const [index, { cpu, knobs }] of nodes.entries()) await rig.join(`node-${index}`, cpu, knobs)
    await addImage(service, 'tiny-amd64', 'amd64')
    await rig.call('POST', '/vmconfigs', small)
    return rig
  }

  nudge(): void {
    for (const loop of this.loops) loop.nudge()
  }

  async join(name: string, cpu: number, knobs: SimulatedKnobs = {}): Promise<Agent> {
    const { token } = await this.call('POST', '/jointokens', {})
    const agent = await startAgent({
      apiUrls: [this.service.apiUrl],
      folder: path.join(this.folder, name),
      imageFolder: path.join(this.folder, 'images'),
      name,
      version: '3.0.0-test',
      driver: new SimulatedDriver(knobs),
      capacity: { architecture: 'amd64', ip: '127.0.0.1', cpu, memoryMiB: 65_536 },
      joinToken: async () => token,
      log: silentLog,
    })
    this.agents.push(agent)
    await agent.ready
    return agent
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async call(method: string, url: string, body?: unknown): Promise<any> {
    const answer = await this.ask(method, url, body)
    assert.ok(answer.status < 300, `${method} ${url}: ${answer.text}`)
    return answer.body
  }

  ask(method: string, url: string, body?: unknown) {
    return this.service.call(method, base + url, { token: this.#token, ...(body !== undefined && { body }) })
  }

  async status(method: string, url: string, body?: unknown): Promise<number> {
    return (await this.ask(method, url, body)).status
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  pool(name = 'warm'): Promise<any> {
    return this.call('GET', `/pools/${name}`)
  }

  async full(ready: number): Promise<void> {
    await eventually(async () => assert.equal((await this.pool()).ready, ready), 20_000)
  }

  get nodes() {
    return this.service.services.collections.nodes.list().map(({ value }) => value)
  }

  get slots() {
    return this.nodes.flatMap(({ slots = {} }) => Object.entries(slots))
  }

  /** Slots taken by VMs, by the VMs' uids. */
  get taken(): ReadonlyMap<string, string> {
    const { vms } = this.service.services.collections
    return new Map(vms.list().flatMap(({ value: { uid, place } }) => (place?.slot ? [[uid, place.slot]] : [])))
  }

  /** The VMs on the nodes' disks. */
  vmsOnDisk(): readonly string[] {
    return this.nodes.flatMap(({ name }) => simulatedVms(path.join(this.folder, name)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unsubscribe?.()
    await Promise.all(this.loops.map((loop) => loop.stop()))
    await Promise.all(this.agents.map((agent) => agent.stop()))
    await this.service[Symbol.asyncDispose]()
    await fs.rm(this.folder, { recursive: true, force: true })
  }
}
