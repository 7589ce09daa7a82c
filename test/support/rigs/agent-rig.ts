// An agent with a stand-in for the server and a scripted driver, in a temporary folder.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Agent, type AgentOptions, startAgent } from '../../../src/agent/agent.ts'
import type { VmReport } from '../../../src/api/nodes/agent.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { scriptedDriver, World } from '../stand-ins/scripted-driver.ts'
import { AgentServer } from './agent-server.ts'

export class AgentRig implements AsyncDisposable {
  readonly server: AgentServer
  readonly world = new World()
  readonly folder: string
  readonly #agents = new Set<Agent>()

  private constructor(server: AgentServer, folder: string) {
    this.server = server
    this.folder = folder
  }

  static async make(): Promise<AgentRig> {
    return new AgentRig(await AgentServer.start(), await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-agent-')))
  }

  /** Returns when the agent has received the server's HELLO. */
  static async start(options: Partial<AgentOptions> = {}): Promise<AgentRig> {
    const rig = await AgentRig.make()
    const agent = await rig.launch(options)
    await agent.ready
    return rig
  }

  async launch(options: Partial<AgentOptions> = {}): Promise<Agent> {
    const agent = await startAgent({
      apiUrls: [this.server.apiUrl],
      folder: path.join(this.folder, 'node'),
      imageFolder: path.join(this.folder, 'images'),
      name: 'node-1',
      version: '3.0.0-test',
      driver: scriptedDriver(this.world),
      joinToken: async () => this.server.joinToken,
      log: silentLog,
      stopTimeoutMs: 50,
      // As for real VMs: a file each.
      durability: 'synced',
      ...options,
    })
    this.#agents.add(agent)
    return agent
  }

  /** Ends the agents in order; their VMs keep running. */
  async stop(): Promise<void> {
    const agents = [...this.#agents]
    this.#agents.clear()
    await Promise.all(agents.map((agent) => agent.stop()))
  }

  async restart(options: Partial<AgentOptions> = {}): Promise<Agent> {
    await this.stop()
    const agent = await this.launch(options)
    await agent.ready
    return agent
  }

  deploy(uid: string): Promise<VmReport> {
    return this.server.fulfilled(this.server.want({ uid }))
  }

  vmFolder(uid = ''): string {
    return path.join(this.folder, 'node', 'vms', uid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.server[Symbol.asyncDispose]()
    await fs.rm(this.folder, { recursive: true, force: true })
  }
}
