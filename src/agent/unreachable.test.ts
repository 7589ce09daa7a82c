// A VM that runs while its guest cannot be reached: what the agent reports, and what it logs.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { duplexPair } from 'node:stream'
import { after, before, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import { desiredVm } from '../../test/support/rigs/desired-vm.ts'
import { scriptedDriver, World } from '../../test/support/stand-ins/scripted-driver.ts'
import { readableLog } from '../../test/support/tools/agent-log.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import type { VmReport } from '../api/nodes/agent.ts'
import type { GuestReach } from '../api/vms/guest-reach.ts'
import { SimulatedDriver } from '../drivers/simulated.ts'
import { pretendImages } from './images/images.ts'
import { Reports } from './link/reports.ts'
import { openHandles } from './state/handles.ts'
import { probeSsh } from './vms/guest-watch.ts'
import { createTunnels } from './vms/tunnels.ts'
import { VmWorker } from './vms/vm.ts'

const forwarded = { greeting: '', last: undefined as GuestReach | undefined }
let forwarder: net.Server
before(async () => {
  forwarder = net.createServer((socket) => socket.on('error', () => undefined).end(forwarded.greeting))
  await once(forwarder.listen(0, '127.0.0.1'), 'listening')
})
after(() => forwarder.close())

it('an agent reports why the guest of a running VM cannot be reached, logs each cause once, and looks again when a client fails', async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-unreachable-'))
  const world = new World()
  const newest = new Map<string, VmReport>()
  const send = async (vms: readonly VmReport[]) => {
    for (const report of vms) newest.set(report.uid, report)
    return []
  }
  const { log, lines } = readableLog()
  const reports = new Reports({ send, unknown: () => undefined, log })
  const tools = {
    driver: { ...scriptedDriver(world, 'scripted'), reach: { last: () => forwarded.last } },
    handles: openHandles(folder, 'scripted', 'synced'),
    images: pretendImages(),
    captures: { pending: () => [], isBusy: () => false, setDesired: () => undefined, forget: async () => undefined },
    isoFolder: folder,
    graceSeconds: 1,
    grow: async () => undefined,
    probeSsh,
  }
  const context = { node: 'node-1', tools: tools as never, reports, log, stopTimeoutMs: 50 }
  const worker = new VmWorker({ ...context, nodeChanged: () => undefined, ended: () => undefined }, 'a', 'new')
  t.after(async () => {
    await worker.stop()
    await reports.stop()
    await fs.rm(folder, { recursive: true })
  })
  const { port } = forwarder.address() as net.AddressInfo
  const reported = (expected: GuestReach) => eventually(async () => assert.deepEqual(newest.get('a')?.reach, expected))

  const other: GuestReach = { reason: 'OtherGuest', message: '192.168.64.7 has another MAC address' }
  forwarded.last = other
  const claim = { store: 's', node: 'n', isNewest: true, isReset: false }
  worker.setDesired({ ...desiredVm('a'), generation: 1, ssh: port }, claim)
  await reported(other)
  Object.assign(forwarded, { greeting: 'SSH-2.0-guest\r\n', last: { ok: true } })
  await reported({ ok: true })
  assert.equal(newest.get('a')?.booted, true)

  // A tunnel of the server failed.
  forwarded.greeting = ''
  worker.tunnelTarget?.failed()
  await reported({ reason: 'Refused', message: 'the connection was closed before an SSH greeting' })
  Object.assign(forwarded, { greeting: 'SSH-2.0-guest\r\n' })
  await reported({ ok: true })

  // The driver knows of a connection that did not come through the agent, and calls its followers.
  const noRoute: GuestReach = { reason: 'NoRoute', message: 'EHOSTUNREACH' }
  Object.assign(forwarded, { greeting: '', last: noRoute })
  world.becomes('a', { state: 'running' })
  await reported(noRoute)
  forwarded.last = other
  await reported(other)

  const told = lines.filter(({ message }) => message === 'the guest of a running VM cannot be reached')
  assert.deepEqual(
    told.map(({ name, namespace, reason, problem }) => [name, namespace, reason, problem]),
    [other, { reason: 'Refused', message: 'the connection was closed before an SSH greeting' }, noRoute].map(
      ({ reason, message }) => ['vm-a', 'svc-default', reason, message],
    ),
  )
})

it('a connection through the agent that brings nothing from the guest is told as failed', async () => {
  const { port } = forwarder.address() as net.AddressInfo
  const failures: string[] = []
  const find = (uid: string) =>
    ({
      desired: { ...desiredVm(uid), ssh: uid === 'closed' ? 1 : port },
      logFile: () => undefined,
      failed: () => failures.push(uid),
    }) as never
  const { log } = readableLog()
  for (const [uid, greeting] of [
    ['silent', ''],
    ['speaks', 'SSH-2.0-guest'],
    ['closed', ''],
  ] as const) {
    forwarded.greeting = greeting
    const [near, far] = duplexPair()
    const tunnels = createTunnels({ connect: async () => far, find, measured: () => '', log })
    near.resume()
    tunnels.open({ type: 'DIAL', tunnel: 't', uid, to: 'ssh' })
    await eventually(async () => assert.equal(tunnels.count, 0))
    await tunnels.stop()
  }
  assert.deepEqual(failures, ['silent', 'closed'])
})

it('a simulated VM is reported as reachable together with its start, or as its driver is told to say', async () => {
  for (const [reach, expected] of [
    [undefined, { ok: true, message: 'Simulated: no guest runs in the VM' }],
    [{ reason: 'NoAddress', message: 'no lease' } as const, { reason: 'NoAddress', message: 'no lease' }],
  ] as const) {
    await using rig = await AgentRig.start({ driver: new SimulatedDriver({ ...(reach && { reach }) }) })
    // Simulated drivers of one process share the ports.
    assert.deepEqual(
      (await rig.server.fulfilled(rig.server.want({ uid: 'a', ssh: expected.message.length + 1_000 }))).reach,
      expected,
    )
  }
})
