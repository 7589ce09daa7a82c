// Kills the agent process at every fail point of every kind of work. The next agent completes the work: the VM reaches its desired
// state, a removal leaves nothing, and nothing else is done.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { AgentServer } from '../../test/support/rigs/agent-server.ts'
import type { DesiredVm, VmReport } from '../api/nodes/agent.ts'
import type { Driver } from '../drivers/driver.ts'
import { SimulatedDriver } from '../drivers/simulated.ts'
import { KeyedLog } from '../platform/keyed-log.ts'
import { silentLog } from '../platform/log.ts'
import { startAgent } from './agent.ts'
import { failPoints, type WorkKind } from './vms/steps.ts'

const program = path.resolve(import.meta.dirname, '../../test/support/processes/agent-process.ts')

/** The desired states that lead to each kind of work. All but the last are fulfilled first. */
const changes: Readonly<Record<WorkKind, readonly Partial<DesiredVm>[]>> = {
  deploy: [{}],
  start: [{}, { power: 'stopped' }, { power: 'running' }],
  stop: [{}, { power: 'stopped' }],
  suspend: [{}, { power: 'suspended' }],
  resume: [{}, { power: 'suspended' }, { power: 'running' }],
  revert: [{}, { diskGeneration: 2 }],
  resize: [{}, { diskGb: 20 }],
  capture: [{}, { captures: [{ id: 'saved', kind: 'save', withMemory: true }] }],
  claim: [{ uid: 's', isSlot: true }, { slot: 's' }],
  delete: [{}, { power: 'deleted' }],
}
/** For steps that not every work of a kind has. */
const rare: Readonly<Record<string, readonly Partial<DesiredVm>[]>> = {
  'agent.claim.discard': [{ uid: 's', isSlot: true }, { uid: 's', power: 'stopped' }, { slot: 's' }],
  'agent.revert.suspend': [{}, { diskGeneration: 2, power: 'suspended' }],
  'agent.resize.suspend': [{}, { diskGb: 20, power: 'suspended' }],
  'agent.resize.partition': [{}, { diskGb: 20, growth: { user: 'admin', password: 'password-canary' } }],
}
/** Simulated VMs have no memory, so a capture of one has a warning. */
const warned = ['agent.resize.partition', 'agent.capture.capture']
/** Steps that need a VM with a lost disk, which only a revert may replace. */
const withoutDisk = new Set(['agent.revert.create'])

describe('agent that is killed', { concurrency: 4 }, () => {
  let root: string
  const children = new Set<ChildProcess>()
  before(async () => {
    root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-crash-'))
  })
  after(async () => {
    for (const child of children) child.kill('SIGKILL')
    await fs.rm(root, { recursive: true, force: true })
  })

  for (const [index, point] of failPoints.entries()) {
    it(`an agent that is killed at ${point} is followed by one that completes the work`, async () => {
      await using server = await AgentServer.start()
      const folder = path.join(root, point)
      const before = [...(rare[point] ?? changes[point.split('.')[1] as WorkKind])]
      const fatal = before.pop()
      const vm = { uid: 'a', ssh: 42_000 + index }
      await work(server, folder, async () => {
        for (const desired of before) await server.fulfilled(server.want({ ...vm, ...desired }))
      })
      if (withoutDisk.has(point)) logOf(folder, 'simulated').delete('a')

      const child = spawn(process.execPath, [program, server.apiUrl, server.joinToken, folder], {
        env: { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: point },
        stdio: 'inherit',
      })
      children.add(child)
      const ended = once(child, 'exit')
      await server.stream()
      // A slot that a VM takes over is no longer listed.
      if (fatal?.slot !== undefined) server.desired.delete(fatal.slot)
      const last = server.want({ ...vm, ...fatal })
      assert.deepEqual(await ended, [null, 'SIGKILL'])
      children.delete(child)
      assert.ok(!(await contents(folder)).includes('canary'), 'a secret is on disk')

      server.vms.clear()
      await work(server, folder, async (driver) => {
        check(await server.fulfilled(last), last, point)
        const uid = last.slot ?? 'a'
        const handle = { version: 1, driver: 'simulated', uid, folder: path.join(folder, 'vms', uid) } as const
        assert.equal((await driver.inspect(handle)).state, states[last.power])
        if (last.power !== 'deleted') await server.fulfilled(server.want({ ...last, generation: 99, power: 'deleted' }))
        assert.deepEqual([...logOf(folder, 'svc3'), ...logOf(folder, 'simulated')], [])
        const files = (await fs.readdir(path.join(folder, 'vms'))).toSorted()
        assert.deepEqual(files, ['simulated.jsonl', 'svc3.jsonl'])
      })
    })
  }
})

const logOf = (folder: string, name: string) => new KeyedLog(path.join(folder, 'vms'), name)

const states = { running: 'running', stopped: 'stopped', suspended: 'suspended', deleted: 'absent' } as const

/** Uses an agent in this process. */
async function work(server: AgentServer, folder: string, what: (driver: Driver) => Promise<void>): Promise<void> {
  const driver = new SimulatedDriver()
  const agent = await startAgent({
    apiUrls: [server.apiUrl],
    folder,
    imageFolder: path.join(folder, 'images'),
    name: path.basename(folder),
    version: '3.0.0-test',
    driver,
    joinToken: async () => server.joinToken,
    log: silentLog,
  })
  try {
    await agent.ready
    await what(driver)
  } finally {
    await agent.stop()
  }
}

function check(report: VmReport, { power, generation, diskGb }: DesiredVm, point: string): void {
  assert.equal(report.power, power === 'deleted' ? 'removed' : power)
  assert.equal(report.generation, generation)
  assert.equal(report.problem, undefined)
  if (diskGb !== undefined) assert.equal(report.diskGb, diskGb)
  assert.equal(report.warning !== undefined, warned.includes(point), report.warning)
}

async function contents(folder: string): Promise<string> {
  const files = await fs.readdir(folder, { recursive: true, withFileTypes: true })
  const texts = files.filter((file) => file.isFile()).map((file) => fs.readFile(path.join(file.parentPath, file.name)))
  return (await Promise.all(texts)).join('\n')
}
