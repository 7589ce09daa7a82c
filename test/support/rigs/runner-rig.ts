// A service with runner pools in this process: server, controllers, agents with simulated guests, and a stand-in for
// GitHub.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Agent, startAgent } from '../../../src/agent/agent.ts'
import { runnerWorld } from '../../../src/control-plane/runner-world.ts'
import { recordEvents } from '../../../src/controllers/record-events.ts'
import { driveRunners } from '../../../src/controllers/runners/drive-runners.ts'
import { fillPools } from '../../../src/controllers/scheduling/fill-pools.ts'
import { Placements } from '../../../src/controllers/scheduling/placements.ts'
import { scheduleVms } from '../../../src/controllers/scheduling/schedule-vms.ts'
import { silentLog } from '../../../src/platform/log.ts'
import type { Loop } from '../../../src/platform/loop.ts'
import { GitHubStandIn } from '../stand-ins/github.ts'
import { addImage } from '../stand-ins/node.ts'
import { type GuestBehaviour, RunnerGuests } from '../stand-ins/runner-guests.ts'
import { eventually } from '../tools/eventually.ts'
import { startService, type TestService } from './service.ts'

const base = '/api/v1/namespaces/svc-default'
const retry = { attempts: 4, firstDelayMs: 20, maxDelayMs: 200, maxRetryAfterMs: 1_000 }

export class RunnerRig implements AsyncDisposable {
  readonly service: TestService
  readonly github: GitHubStandIn
  readonly guests: GuestBehaviour = { jobMs: 50, mute: 0, broken: 0 }
  readonly #folder: string
  readonly #agents: Agent[] = []
  readonly #loops: Loop[] = []
  #driving: Loop | undefined
  #driver: RunnerGuests | undefined
  #token = ''

  private constructor(service: TestService, github: GitHubStandIn, folder: string) {
    this.service = service
    this.github = github
    this.#folder = folder
  }

  static async start(cpu = 8, github: Parameters<typeof GitHubStandIn.start>[0] = {}): Promise<RunnerRig> {
    const service = await startService({ logLevel: 'warn' })
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-runners-'))
    const rig = new RunnerRig(service, await GitHubStandIn.start({ pollMs: 300, lapseMs: 700, ...github }), folder)
    // Agents sign with the real clock.
    service.clock.nowMs = Date.now()
    Object.assign(service.clock, { now: () => new Date(Date.now() + rig.aheadMs) })
    rig.#token = await service.tokenFor({ kind: 'user', name: 'admin@example.com', admin: true })
    await service.listen()
    const { services } = service
    const { presence } = services
    const placements = new Placements(services, presence)
    rig.#loops.push(recordEvents(services), scheduleVms(services, placements), fillPools(services, placements))
    services.presence.subscribe(() => {
      for (const loop of rig.#loops) loop.nudge()
    })
    await rig.#join('node-0', cpu)
    await addImage(service, 'tiny-amd64', 'amd64')
    await rig.call('POST', '/vmconfigs', { name: 'small', image: 'tiny-amd64', cpu: 1, memory: 0.5 })
    rig.drive()
    return rig
  }

  /** If set, logging in to guests fails with it. */
  sshProblem: string | undefined

  /** How far the service's clock is ahead. */
  aheadMs = 0

  /** Starts a leader. */
  drive(): void {
    const { services } = this.service
    const world = runnerWorld(services, retry)
    this.#driving = driveRunners(services, services.presence, {
      ...world,
      start: async (_pool, { name }, prepare) => {
        if (this.sshProblem !== undefined) throw new Error(this.sshProblem)
        await this.#driver?.run(name, await prepare())
      },
    })
  }

  /** Stops the leader in order. */
  async rest(): Promise<void> {
    await this.#driving?.stop()
  }

  async #join(name: string, cpu: number): Promise<void> {
    const { token } = await this.call('POST', '/jointokens', {})
    this.#driver = new RunnerGuests(this.github, this.guests)
    const agent = await startAgent({
      apiUrls: [this.service.apiUrl],
      folder: path.join(this.#folder, name),
      imageFolder: path.join(this.#folder, 'images'),
      name,
      version: '3.0.0-test',
      driver: this.#driver,
      capacity: { architecture: 'amd64', ip: '127.0.0.1', cpu, memoryMiB: 65_536 },
      joinToken: async () => token,
      log: silentLog,
    })
    this.#agents.push(agent)
    await agent.ready
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

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  create(more: object = {}): Promise<any> {
    return this.call('POST', '/runnerpools', {
      name: 'ios',
      url: this.github.url,
      config: 'small',
      credential: { token: 'ghp_standin' },
      max: 4,
      ...more,
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  pool(): Promise<any> {
    return this.call('GET', '/runnerpools/ios')
  }

  get vms() {
    return this.service.services.collections.vms.list().map(({ value }) => value)
  }

  /** All jobs have ended, and nothing is left of them. */
  async quiet(timeoutMs = 40_000): Promise<void> {
    await eventually(() => {
      assert.deepEqual(
        this.github.jobs.filter(({ state }) => state !== 'completed').map(({ name }) => name),
        [],
      )
      assert.deepEqual(
        [...this.github.runners.values()].map(({ name }) => name),
        [],
      )
      assert.deepEqual(
        this.vms.map(({ name }) => name),
        [],
      )
      assert.deepEqual(this.service.services.collections.runners.list(), [])
    }, timeoutMs)
    assert.deepEqual(this.github.violations, [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.rest()
    await Promise.all(this.#loops.map((loop) => loop.stop()))
    await this.github[Symbol.asyncDispose]()
    await Promise.all(this.#agents.map((agent) => agent.stop()))
    await this.service[Symbol.asyncDispose]()
    await fs.rm(this.#folder, { recursive: true, force: true })
  }
}
