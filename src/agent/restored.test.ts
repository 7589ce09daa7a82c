// A server with older or other data than before: VMs that it does not know keep running, the others follow its desired state.
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
  /** Waits until the agent reports that it keeps an unlisted VM. */
  const isKept = async (uid: string, reason: RegExp, times = 1): Promise<void> => {
    await eventually(async () => assert.equal(told(`vm-${uid}`).length, times))
    const line = told(`vm-${uid}`).at(-1)
    assert.equal(line?.namespace, 'svc-default')
    assert.match(line?.message ?? '', /--remove-unknown/)
    assert.match(line?.reason ?? '', reason)
    await eventually(async () => assert.equal((await record(uid)).isKept, true))
    assert.deepEqual([world.vms.get(uid)?.observed.state, world.count(`destroy ${uid}`)], ['running', 0])
  }

  it('an agent whose server was restored from a backup keeps newer VMs until an option has them removed', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await rig.deploy('b')
    await server.restore(backup)
    await isKept('b', /older than what this node has seen/)
    assert.equal(told('vm-a').length, 0)
    // The data grows to the former revision, which is no reason to delete the kept VMs.
    for (const uid of ['c', 'd', 'e']) await rig.deploy(uid)
    assert.ok(server.store.revision > backup.store.revision + 2)
    await server.reconnect()
    await isKept('b', /kept before/, 2)
    await rig.restart(options)
    await isKept('b', /kept before/, 3)
    assert.ok(!server.history.slice(-4).some(({ uid }) => uid === 'b'))
    await rig.restart({ ...options, removeUnknown: true })
    await eventually(async () => assert.deepEqual([...world.vms.keys()], ['a', 'c', 'd', 'e']))
    // The option counts once; later VMs are judged as usual.
    server.store.revision = 1
    server.desired.delete('a')
    await server.reconnect()
    await isKept('a', /older/)
  })

  it('an agent whose server was restored and used while the agent was away keeps newer VMs', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))
    await rig.deploy('b')
    await rig.stop()
    await server.restore({ ...backup, store: { ...backup.store, revision: 1_000 } }, false)
    await rig.launch(options)
    await isKept('b', /older than what this node has seen/)
  })

  it('an agent whose server has lost its data and accepts the node again keeps all VMs, and manages them again with the old data', async () => {
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

  it('an agent that joined its cluster again keeps the VMs of the former node', async () => {
    await rig.deploy('a')
    server.desired.delete('a')
    server.forgetNode('node-1')
    await server.reconnect()
    await isKept('a', /before it joined again/)
    assert.ok(lines.some(({ message }) => message.includes('joined as a new node')))
  })

  it('an agent removes no VM for a HELLO without an identity of its data', async () => {
    await rig.deploy('a')
    const opened = server.stream()
    server.send({ type: 'HELLO', vms: [], heartbeatSeconds: 60 } as never)
    await opened
    assert.ok(lines.some(({ message }) => message.startsWith('the server sent an unusable message')))
    assert.deepEqual([...world.vms.keys()], ['a'])
  })

  it('an agent follows a deletion also after an earlier agent was killed before it could write everything', async () => {
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
    // The next generation counts as new, although its number was used before.
    assert.equal((await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))).power, 'stopped')
    assert.equal(world.vms.get('a')?.observed.state, 'stopped')
    // The same while the agent does not run.
    await rig.stop()
    await server.restore(backup, false)
    server.vms.clear()
    await rig.launch(options)
    assert.equal((await server.until('a', ({ power }) => power === 'running')).generation, 1)
  })

  it('an agent whose server has lost the record of a revert carries out the next one', async () => {
    await rig.deploy('a')
    const backup = server.backUp()
    await server.fulfilled(server.want({ uid: 'a', diskGeneration: 2 }))
    server.vms.clear()
    await server.restore(backup)
    await server.until('a', ({ generation }) => generation === 1)
    await server.fulfilled(server.want({ uid: 'a', diskGeneration: 2 }))
    assert.equal(world.count('revert a'), 2)
  })

  it('an agent keeps the disk of a VM that cannot be started, although its restored server does not know that it ran', async () => {
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
