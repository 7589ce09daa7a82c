// A server whose data are older than before, or others: VMs that it does not know run on, the others become as it says.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import type { AgentServer } from '../../test/support/rigs/agent-server.ts'
import type { World } from '../../test/support/stand-ins/scripted-driver.ts'
import { type LogLine, readableLog } from '../../test/support/tools/agent-log.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import type { AgentOptions } from './agent.ts'

describe('restored server', () => {
  let rig: AgentRig
  let server: AgentServer
  let world: World
  let options: Partial<AgentOptions>
  let lines: readonly LogLine[]

  beforeEach(async () => {
    const readable = readableLog()
    options = { log: readable.log }
    lines = readable.lines
    rig = await AgentRig.start(options)
    server = rig.server
    world = rig.world
  })
  afterEach(() => rig[Symbol.asyncDispose]())

  const record = async (uid: string) => JSON.parse(await fs.readFile(path.join(rig.vmFolder(uid), 'svc3.json'), 'utf8'))
  const told = (name: string): readonly LogLine[] =>
    lines.filter((line) => line.level === 'error' && line.name === name && line.message.includes('is KEPT'))
  /** A VM is not in the list that the agent just got, and stays. */
  const isKept = async (uid: string, reason: RegExp, times = 1): Promise<void> => {
    await eventually(async () => assert.equal(told(`vm-${uid}`).length, times))
    const line = told(`vm-${uid}`).at(-1)
    assert.equal(line?.namespace, 'svc-default')
    assert.match(line?.message ?? '', /--remove-unknown/)
    assert.match(line?.reason ?? '', reason)
    await eventually(async () => assert.equal((await record(uid)).isKept, true))
    assert.deepEqual([world.vms.get(uid)?.observed.state, world.count(`destroy ${uid}`)], ['running', 0])
  }

  it('an agent whose server was restored from a backup keeps what is newer than that, for good, until somebody has it removed', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await rig.deploy('b')
    await server.restore(backup)
    await isKept('b', /older than what this node has seen/)
    assert.equal(told('vm-a').length, 0)
    // The data go on, and come as far as they were: that does not make the old ones deleted.
    for (const uid of ['c', 'd', 'e']) await rig.deploy(uid)
    assert.ok(server.store.revision > backup.store.revision + 2)
    await server.reconnect()
    await isKept('b', /kept before/, 2)
    await rig.restart(options)
    await isKept('b', /kept before/, 3)
    assert.ok(!server.history.slice(-4).some(({ uid }) => uid === 'b'))
    await rig.restart({ ...options, removeUnknown: true })
    await eventually(async () => assert.deepEqual([...world.vms.keys()], ['a', 'c', 'd', 'e']))
    // Once: what this one does not list is judged as ever.
    server.store.revision = 1
    server.desired.delete('a')
    await server.reconnect()
    await isKept('a', /older/)
  })

  it('an agent whose server was restored and went on while the agent was away keeps what is newer', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))
    await rig.deploy('b')
    await rig.stop()
    await server.restore({ ...backup, store: { ...backup.store, revision: 1_000 } }, false)
    await rig.launch(options)
    await isKept('b', /older than what this node has seen/)
  })

  it('an agent whose server has lost its data and takes the node in again keeps all of it, and has it back with the data', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    server.forgetNode('node-1')
    await server.restore()
    await isKept('a', /belongs to another cluster/)
    assert.deepEqual(server.joins, ['node-1', 'node-1'])
    const before = [...world.calls]
    server.vms.clear()
    await server.restore(backup)
    assert.equal((await server.until('a', ({ power }) => power === 'running')).generation, 1)
    await eventually(async () => assert.equal((await record('a')).isKept, undefined))
    assert.deepEqual(world.calls, before)
  })

  it('an agent whose server took the node in anew keeps what the former one had', async () => {
    await rig.deploy('a')
    server.desired.delete('a')
    server.forgetNode('node-1')
    await server.reconnect()
    await isKept('a', /before it joined again/)
    assert.ok(lines.some(({ message }) => message.includes('joined as a new node')))
  })

  it('an agent removes nothing for a HELLO that does not say which data it is from', async () => {
    await rig.deploy('a')
    const opened = server.stream()
    server.send({ type: 'HELLO', vms: [], heartbeatSeconds: 60 } as never)
    await opened
    assert.ok(lines.some(({ message }) => message.startsWith('the server sent an unusable message')))
    assert.deepEqual([...world.vms.keys()], ['a'])
  })

  it('an agent believes its server about a deletion, also after an agent was killed before all was written', async () => {
    await rig.deploy('a')
    await rig.deploy('b')
    await rig.stop()
    await fs.rm(path.join(rig.folder, 'node', 'store.json'))
    server.desired.delete('a')
    await rig.launch(options)
    await eventually(async () => assert.deepEqual([...world.vms.keys()], ['b']))
    await rig.stop()
    await fs.rm(path.join(rig.folder, 'node', 'store.json'))
    server.desired.delete('b')
    server.store.revision = 2
    await rig.launch(options)
    await isKept('b', /older than what this node has seen/)
  })

  it('an agent follows a restored server whose desired state is older', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    for (const power of ['stopped', 'running', 'stopped'] as const)
      await server.fulfilled(server.want({ uid: 'a', power }))
    server.vms.clear()
    await server.restore(backup)
    const report = await server.until('a', ({ power }) => power === 'running')
    assert.equal(report.generation, 1)
    // And what comes next is new, though there was such a generation before.
    assert.equal((await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))).power, 'stopped')
    assert.equal(world.vms.get('a')?.observed.state, 'stopped')
    // The same again, and the agent did not see it happen.
    await rig.stop()
    await server.restore(backup, false)
    server.vms.clear()
    await rig.launch(options)
    assert.equal((await server.until('a', ({ power }) => power === 'running')).generation, 1)
  })

  it('an agent whose server asks for a revert that it has forgotten does a new one', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await server.fulfilled(server.want({ uid: 'a', diskGeneration: 2 }))
    server.vms.clear()
    await server.restore(backup)
    await server.until('a', ({ generation }) => generation === 1)
    await server.fulfilled(server.want({ uid: 'a', diskGeneration: 2 }))
    assert.equal(world.count('revert a'), 2)
  })

  it('an agent keeps the disk of a VM that cannot be started, though its server thinks that it was never up', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))
    server.vms.clear()
    world.failNext('start', new Error('qemu is ill'))
    await server.restore(backup)
    const report = await server.until('a', ({ problem }) => problem !== undefined)
    assert.match(report.problem ?? '', /Could not be started.*qemu is ill/)
    assert.deepEqual([world.vms.has('a'), world.count('destroy a')], [true, 0])
  })
})
