// The agent with a stand-in for the server and a driver that the tests control.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import type { AgentServer } from '../../test/support/rigs/agent-server.ts'
import { scriptedDriver, type World } from '../../test/support/stand-ins/scripted-driver.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import type { DesiredVm } from '../api/nodes/agent.ts'
import { HostUnfit, PortTaken } from '../drivers/driver.ts'
import { SimulatedDriver } from '../drivers/simulated.ts'

describe('agent', () => {
  let rig: AgentRig
  let server: AgentServer
  let world: World

  const deploy = async (uid: string) => {
    const report = await rig.deploy(uid)
    assert.equal(report.power, 'running')
    return report
  }

  beforeEach(async () => {
    rig = await AgentRig.start()
    server = rig.server
    world = rig.world
  })
  afterEach(() => rig[Symbol.asyncDispose]())

  it('the agent joins once, with a private key that only its user can read', async () => {
    assert.deepEqual(server.joins, ['node-1'])
    const file = path.join(rig.folder, 'node', 'node.json')
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    await rig.restart()
    assert.deepEqual(server.joins, ['node-1'])
  })

  it('the agent reports the node before it opens the stream', async () => {
    const [join, token, node, stream] = server.requests
    assert.deepEqual([join, token, node, stream], ['POST /join', 'POST /token', 'POST /node', 'GET /connection'])
    const report = server.nodes[0]
    assert.ok(report)
    assert.equal(report.ip, '127.0.0.1')
    assert.equal(report.driver, 'simulated')
    assert.ok(report.cpu >= 1 && report.memoryMiB > 100 && report.diskFreeGb >= 0)
  })

  it('the agent reports checks of its host, from the first report', async () => {
    const checks = [{ check: 'sleep', look: async () => ({ result: 'ok', found: 'never' }) as const }]
    const known = server.nodes.length
    await rig.restart({ checks })
    assert.deepEqual(server.nodes[known]?.checks, [{ check: 'sleep', result: 'ok', found: 'never' }])
  })

  it('the agent deploys a VM, and stores no secret', async () => {
    const report = await deploy('a')
    assert.deepEqual(report, {
      uid: 'a',
      namespace: 'svc-default',
      name: 'vm-a',
      generation: 1,
      power: 'running',
      diskGb: 10,
    })
    assert.deepEqual(world.calls, ['create a', 'start a'])
    assert.deepEqual(world.vms.get('a')?.spec.metadata, { token: 'metadata-canary' })
    await rig.stop()
    const text = await fs.readFile(path.join(rig.vmFolder('a'), 'svc3.json'), 'utf8')
    assert.ok(!text.includes('canary') && !text.includes(Buffer.from('userdata-canary').toString('base64')))
    assert.equal(JSON.parse(text).fulfilled, 1)
  })

  it('the agent stops, starts, suspends and resumes a VM', async () => {
    await deploy('a')
    for (const power of ['stopped', 'running', 'suspended', 'running'] as const) {
      const report = await server.fulfilled(server.want({ uid: 'a', power }))
      assert.equal(report.power, power)
      assert.equal(report.problem, undefined)
    }
    assert.deepEqual(world.calls.slice(2), ['stop a', 'start a', 'suspend a', 'resume a'])
  })

  it('the agent reverts a disk once', async () => {
    await deploy('a')
    assert.equal((await server.fulfilled(server.want({ uid: 'a', diskGeneration: 2 }))).power, 'running')
    assert.equal(world.vms.get('a')?.disk, 2)
    assert.deepEqual(world.calls.slice(2), ['kill a', 'revert a', 'start a'])
    await server.fulfilled(server.want({ uid: 'a', power: 'stopped' }))
    assert.equal(world.count('revert a'), 1)
  })

  it('the agent refuses what only a Mac with tart has, where its hypervisor does not have it', async () => {
    const started = world.calls.length
    for (const [uid, more] of Object.entries({
      x: { directories: ['a:/b'] },
      y: { nested: true },
      z: { rosetta: 'r' },
    })) {
      const { power, problem } = await server.fulfilled(server.want({ uid, ...more }))
      assert.equal(power, 'failed')
      assert.match(problem ?? '', /hypervisor "simulated" of this node has no (directories|nested|rosetta)/)
    }
    assert.equal(world.calls.length, started)
  })

  it('the agent resizes a disk, and starts the VM with its old disk if that fails', async () => {
    await deploy('a')
    const grown = await server.fulfilled(server.want({ uid: 'a', diskGb: 20 }))
    assert.deepEqual([grown.power, grown.diskGb, grown.problem], ['running', 20, undefined])
    assert.deepEqual(world.calls.slice(2), ['stop a', 'grow a', 'start a'])
    world.failNext('grow', new Error('no space is left'))
    const failed = await server.fulfilled(server.want({ uid: 'a', diskGb: 30 }))
    assert.equal(failed.power, 'running')
    assert.equal(failed.diskGb, 20)
    assert.match(failed.problem ?? '', /Could not be resized on node node-1: no space is left/)
    assert.equal(world.vms.get('a')?.observed.state, 'running')
  })

  it('the agent reports that its host lacks what a VM needs', async () => {
    world.failNext('start', new HostUnfit('UEFI firmware is not installed on this host'))
    assert.equal((await server.fulfilled(server.want({ uid: 'a' }))).isHostUnfit, true)
    world.failNext('start', new Error('qemu is ill'))
    assert.equal((await server.fulfilled(server.want({ uid: 'b' }))).isHostUnfit, undefined)
  })

  it('the agent cleans up after a failed deployment, and does not retry it', async () => {
    world.failNext('start', new Error('qemu is ill'))
    const report = await server.fulfilled(server.want({ uid: 'a' }))
    assert.equal(report.power, 'failed')
    assert.match(report.problem ?? '', /qemu is ill.*Deploy it again/)
    assert.equal(world.vms.size, 0)
    const again = server.next('a')
    await rig.restart()
    assert.equal((await again).power, 'failed')
    assert.equal(world.vms.size, 0)
    // A new generation is tried again.
    assert.equal((await server.fulfilled(server.want({ uid: 'a' }))).power, 'running')
    world.failNext('start', new Error('qemu is ill'))
    world.failNext('destroy', new Error('stuck'))
    const stuck = await server.fulfilled(server.want({ uid: 'b' }))
    assert.match(stuck.problem ?? '', /qemu is ill; cleaning up failed too \(stuck\)/)
  })

  it('the agent reports the last seen revision when it connects, because another server may accept the connection', async () => {
    await deploy('a')
    const desired = server.want({ uid: 'a', power: 'stopped' })
    await server.fulfilled(desired)
    await server.reconnect()
    assert.equal(server.revisions.at(-1), Number(desired.revision))
  })

  it('the agent requests other ports if its ports are taken, and deploys with those', async () => {
    world.failNext('start', new PortTaken([42_022]))
    const desired = server.want({ uid: 'a' })
    const report = await server.until('a', ({ portsTaken }) => portsTaken !== undefined)
    assert.deepEqual([report.generation, report.power, report.portsTaken], [0, 'starting', [42_022]])
    const again = await server.fulfilled(server.want({ uid: 'a', ssh: 42_023 }))
    assert.deepEqual([again.power, again.portsTaken], ['running', undefined])
    assert.equal(world.vms.get('a')?.spec.forwards[0]?.hostPort, 42_023)
    assert.ok(again.generation > desired.generation)
  })

  it('the agent interrupts a start when the VM is to be deleted', async () => {
    const { reached } = world.block('start')
    server.want({ uid: 'a' })
    await reached
    const report = await server.fulfilled(server.want({ uid: 'a', power: 'deleted' }))
    assert.equal(report.power, 'removed')
    assert.equal(world.vms.size, 0)
    await assert.rejects(fs.stat(rig.vmFolder('a')))
  })

  it('the agent carries out only the newest of several generations', async () => {
    await deploy('a')
    const { reached, release } = world.block('stop')
    server.want({ uid: 'a', power: 'stopped' })
    await reached
    server.want({ uid: 'a', power: 'running' })
    const last = server.want({ uid: 'a', power: 'stopped' })
    server.send({ type: 'PING' })
    release()
    assert.equal((await server.fulfilled(last)).power, 'stopped')
    assert.ok(world.count('start a') <= 2)
  })

  it('the agent retries a removal until it succeeds', async () => {
    await deploy('a')
    world.failNext('destroy', new Error('busy'))
    const desired = server.want({ uid: 'a', power: 'deleted' })
    const first = await server.until('a', ({ problem }) => problem !== undefined)
    assert.match(first.problem ?? '', /Could not be removed.*busy/)
    assert.equal((await server.until('a', ({ power }) => power === 'removed')).generation, desired.generation)
    assert.equal(world.vms.size, 0)
  })

  it('the agent reports that a VM has stopped or failed, and does not start it', async () => {
    await deploy('a')
    world.becomes('a', { state: 'stopped' })
    await server.until('a', ({ power }) => power === 'stopped')
    assert.equal((await server.fulfilled(server.want({ uid: 'a' }))).power, 'running')
    world.becomes('a', { state: 'failed', problem: 'killed by signal 9' })
    const report = await server.until('a', ({ power }) => power === 'failed')
    assert.equal(report.problem, 'killed by signal 9')
    assert.equal(world.count('start a'), 2)
  })

  it('the agent starts VMs that ended with the host again, and reports that', async () => {
    await deploy('a')
    await rig.stop()
    world.becomes('a', { state: 'gone' })
    await rig.launch()
    const report = await server.until('a', ({ warning }) => warning?.includes('started again') ?? false)
    assert.equal(report.power, 'running')
    assert.equal(world.count('create a'), 1)
  })

  it('the agent reports a lost disk instead of creating a new one', async () => {
    await deploy('a')
    world.vms.delete('a')
    const report = await server.fulfilled(server.want({ uid: 'a' }))
    assert.equal(report.power, 'failed')
    assert.match(report.problem ?? '', /Its disk is no longer on node node-1/)
    assert.equal(world.count('create a'), 1)
  })

  it('the agent takes over VMs of an earlier agent without touching them', async () => {
    await deploy('a')
    await rig.stop()
    const before = world.calls.length
    const report = server.next('a')
    await rig.launch()
    assert.equal((await report).power, 'running')
    assert.equal(world.calls.length, before)
    // The agent follows their changes.
    world.becomes('a', { state: 'stopped' })
    await server.until('a', ({ power }) => power === 'stopped')
  })

  it("the agent keeps an earlier agent's measurements of its VMs, and deletes those of other VMs", async () => {
    await deploy('a')
    const folder = path.join(rig.folder, 'node', 'measurements')
    await fs.mkdir(folder)
    for (const uid of ['a', 'gone']) await fs.writeFile(path.join(folder, uid), '{}')
    await rig.restart({ driver: { ...scriptedDriver(world), measuring: { usage: async () => undefined } } })
    assert.ok(existsSync(path.join(folder, 'a')))
    await rig.stop()
    assert.deepEqual((await fs.readdir(folder)).sort(), ['a', 'node'])
  })

  it('the agent removes VMs that the server does not know, but not before a HELLO', async () => {
    await deploy('a')
    await deploy('b')
    await rig.stop()
    await fs.mkdir(rig.vmFolder('half-made'))
    server.desired.delete('a')
    server.goAway()
    await rig.launch()
    assert.equal(world.vms.size, 2)
    server.comeBack()
    await eventually(async () => assert.deepEqual(await fs.readdir(rig.vmFolder()), ['b']))
    assert.deepEqual([...world.vms.keys()], ['b'])
  })

  it('the agent requests a new HELLO when the server does not know a reported VM, and follows that', async () => {
    await deploy('a')
    await deploy('b')
    for (const uid of ['a', 'b']) server.unknown.add(uid)
    server.desired.delete('a')
    world.becomes('a', { state: 'stopped' })
    await server.until('a', ({ power }) => power === 'stopped')
    await eventually(async () => assert.deepEqual([...world.vms.keys()], ['b']))
    assert.equal(server.streamsOpened, 2)
  })

  it('the agent reconnects after an outage of the server, and reports everything again', async () => {
    await deploy('a')
    server.goAway()
    world.becomes('a', { state: 'failed', problem: 'meanwhile' })
    server.vms.clear()
    const stream = server.stream()
    server.comeBack()
    await stream
    const report = await server.until('a', ({ power }) => power === 'failed')
    assert.equal(report.problem, 'meanwhile')
  })

  it('the agent repeats a report until the server accepts it', async () => {
    await deploy('a')
    server.refuseReports = true
    world.becomes('a', { state: 'stopped' })
    await eventually(async () => assert.ok(server.requests.filter((route) => route === 'POST /vms').length > 3))
    server.refuseReports = false
    await server.until('a', ({ power }) => power === 'stopped')
  })

  it('the agent requests a new token when the server rejects the old one', async () => {
    await deploy('a')
    server.forgetTokens()
    server.dropStreams()
    world.becomes('a', { state: 'stopped' })
    await server.until('a', ({ power }) => power === 'stopped')
    assert.equal(server.tokensIssued, 2)
  })

  it('the agent continues with its key if the server cannot replace it', async () => {
    await rig.restart({ renewKey: true })
    assert.ok(server.requests.includes('POST /key'))
    assert.deepEqual(server.joins, ['node-1'])
  })

  it('the agent joins again after its removal if it has a join token', async () => {
    server.forgetNode('node-1')
    const stream = server.stream()
    server.dropStreams()
    await stream
    assert.deepEqual(server.joins, ['node-1', 'node-1'])
  })

  it('the agent gives up after its removal if it has no join token', async () => {
    await rig.stop()
    server.forgetNode('node-1')
    const agent = await rig.launch({ joinToken: undefined })
    assert.match((await agent.failed).message, /is not known/)
  })

  it('the agent does not start if the cluster refuses it', async () => {
    await rig.stop()
    const folder = path.join(rig.folder, 'other')
    await assert.rejects(rig.launch({ folder, joinToken: async () => 'wrong' }), /join token is not good/)
    await assert.rejects(rig.launch({ folder, joinToken: undefined }), /has not joined the cluster/)
    await assert.rejects(rig.launch({ name: 'another' }), /belongs to node node-1/)
  })

  it('the agent tries the next address if one does not respond', async () => {
    await rig.stop()
    const agent = await rig.launch({ apiUrls: ['http://127.0.0.1:1', server.apiUrl] })
    await agent.ready
  })

  it('the agent warns about a file system that was not grown because the agent was killed', async () => {
    await deploy('a')
    const { reached } = world.block('start')
    const growth = { user: 'admin', password: 'password-canary' }
    const desired = server.want({ uid: 'a', diskGb: 20, growth })
    await reached
    await rig.stop()
    const text = await fs.readFile(path.join(rig.vmFolder('a'), 'svc3.json'), 'utf8')
    assert.ok(!text.includes('canary'))
    world.unblock('start')
    await rig.launch()
    const report = await server.fulfilled(desired)
    assert.deepEqual([report.power, report.diskGb], ['running', 20])
    assert.match(report.warning ?? '', /The disk has grown, but its partition and file system have not/)
  })

  it('the agent grows the file system through an agent in the guest, also if the start of the VM has a warning', async () => {
    await deploy('a')
    const driver = scriptedDriver(world)
    const scripts: string[] = []
    let growth: string | undefined
    await rig.restart({
      driver: {
        ...driver,
        start: async (...given) => ({ ...(await driver.start(...given)), note: 'it has no screen' }),
        resizing: {
          grow: async (...given) => growth ?? driver.resizing?.grow(...given),
          diskBytes: async () => 0,
        },
        inside: {
          shell: async (_, script) => {
            scripts.push(script)
            return 'svc3-system Darwin 0\nsvc3-sizes 1000 2000 2100\n'
          },
        },
      },
    })
    const grown = await server.fulfilled(server.want({ uid: 'a', diskGb: 20 }))
    assert.deepEqual([grown.warning, scripts.length], ['it has no screen', 2])
    growth = 'the recovery partition cannot move'
    const stuck = await server.fulfilled(server.want({ uid: 'a', diskGb: 30 }))
    assert.match(stuck.warning ?? '', /^it has no screen; .*the recovery partition cannot move/)
    assert.equal(scripts.length, 2)
  })

  it('the agent continues a deployment that an earlier agent did not complete', async () => {
    const { reached } = world.block('start')
    const desired = server.want({ uid: 'a' })
    await reached
    await rig.stop()
    world.unblock('start')
    await rig.launch()
    assert.equal((await server.fulfilled(desired)).power, 'running')
    assert.equal(world.vms.get('a')?.disk, 1)
  })

  /** The state after a kill between the report that the VM runs and the write of its record. */
  const deployUnrecorded = async (): Promise<DesiredVm> => {
    const desired = server.want({ uid: 'a' })
    await server.fulfilled(desired)
    await rig.stop()
    const file = path.join(rig.vmFolder('a'), 'svc3.json')
    await fs.writeFile(file, JSON.stringify({ ...JSON.parse(await fs.readFile(file, 'utf8')), fulfilled: 0 }))
    server.desired.set('a', { ...desired, fulfilled: desired.generation })
    return desired
  }

  it('the agent does not repeat a generation that it has reported: a VM that failed since stays failed', async () => {
    const desired = await deployUnrecorded()
    Object.assign(world.vms.get('a') ?? assert.fail(), { observed: { state: 'failed', problem: 'QEMU was killed' } })
    const [before, next] = [world.calls.length, server.next('a', ({ generation }) => generation > 0)]
    await rig.launch()
    const { power, problem } = await next
    assert.deepEqual([power, problem, world.calls.length - before], ['failed', 'QEMU was killed', 0])
    const file = path.join(rig.vmFolder('a'), 'svc3.json')
    await eventually(async () =>
      assert.equal(JSON.parse(await fs.readFile(file, 'utf8')).fulfilled, desired.generation),
    )
  })

  it('the agent keeps the disk of a VM that was reported as deployed and cannot be started again', async () => {
    await deployUnrecorded()
    Object.assign(world.vms.get('a') ?? assert.fail(), { observed: { state: 'gone' } })
    world.failNext('start', new Error('no space'))
    await rig.launch()
    assert.match((await server.next('a', ({ problem }) => problem !== undefined)).problem ?? '', /no space/)
    assert.deepEqual([world.vms.get('a')?.disk, world.count('destroy a')], [1, 0])
  })

  it('the agent takes over a VM with an unreadable record, and does not change its disk', async () => {
    await deploy('a')
    await rig.stop()
    await fs.writeFile(path.join(rig.vmFolder('a'), 'svc3.json'), '{')
    const before = world.calls.length
    const next = server.next('a')
    await rig.launch()
    const report = await next
    assert.deepEqual([report.power, report.generation], ['running', 1])
    assert.equal(world.calls.length, before)
  })

  it('the agent stores simulated VMs in two files, reads them at the next start, and closes them when it stops', async () => {
    const kept = (): readonly string[] =>
      readdirSync('/proc/self/fd').flatMap((each) => {
        const link = `/proc/self/fd/${each}`
        const place = existsSync(link) ? readlinkSync(link) : ''
        return place.startsWith(rig.folder) && place.endsWith('.jsonl') ? [path.basename(place)] : []
      })
    const files = ['simulated.jsonl', 'svc3.jsonl']
    for (const [index, uid] of ['a', 'b'].entries()) {
      await rig.restart({ driver: new SimulatedDriver(), durability: 'written' })
      await server.fulfilled(server.want({ uid, ssh: 42_000 + index }))
      assert.deepEqual(kept().toSorted(), files)
    }
    assert.deepEqual((await fs.readdir(rig.vmFolder())).toSorted(), files)
    for (const uid of ['a', 'b']) await server.fulfilled(server.want({ uid, power: 'deleted' }))
    await rig.stop()
    assert.deepEqual(kept(), [])
    for (const file of files) {
      const lines = (await fs.readFile(path.join(rig.vmFolder(), file), 'utf8')).trim().split('\n')
      assert.deepEqual(lines.slice(-2), ['["a"]', '["b"]'])
      assert.ok(!lines.some((line) => line.includes('canary')))
    }
  })

  it('a second agent cannot use the folder of the agent', async () => {
    await assert.rejects(rig.launch(), /held by process/)
  })
})
