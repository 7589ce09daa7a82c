// Two servers on one etcd, one of which loses its way there: it answers nothing from what it remembers, its node goes
// over to the other, waiting callers get an error, and all works again when the network is back. When etcd is down,
// both still serve reads.
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Agent, startAgent } from '../../src/agent/agent.ts'
import type { ControlPlane } from '../../src/control-plane/control-plane.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { silentLog } from '../../src/platform/log.ts'
import { adminToken, ask, type SharedServers, startShared } from '../support/processes/shared-servers.ts'
import { startTcpProxy, type TcpProxy } from '../support/stand-ins/tcp-proxy.ts'
import { eventually } from '../support/tools/eventually.ts'

const timeoutMs = 60_000
const inDefault = '/namespaces/svc-default'
let shared: SharedServers
let proxy: TcpProxy
let well: ControlPlane
let cut: ControlPlane
let agent: Agent
let token: string

before(async () => {
  shared = await startShared()
  proxy = await startTcpProxy(Number(new URL(shared.etcd.urls[0] ?? '').port))
  well = await shared.start()
  cut = await shared.start({ storeAddress: `etcd://127.0.0.1:${proxy.port}/shared` })
  token = await adminToken(well)
  const made = await ask(well, 'POST', `${inDefault}/images`, { token, body: { name: 'empty', size: '1G' } })
  assert.equal(made.status, 202, await made.text())
  const join = await well.nodeKeys.issueJoinToken('svc-default', 600)
  const folder = await shared.folder()
  agent = await startAgent({
    apiUrls: [cut.localUrl, well.localUrl],
    folder,
    imageFolder: path.join(folder, 'images'),
    name: 'node-1',
    version: '3.0.0-test',
    driver: new SimulatedDriver({ architectures: ['amd64'] }),
    capacity: { architecture: 'amd64', ip: '127.9.9.9', cpu: 8, memoryMiB: 8_192 },
    joinToken: async () => join.token,
    log: silentLog,
  })
  await agent.ready
})
after(async () => {
  await agent.stop()
  proxy.open()
  await shared[Symbol.asyncDispose]()
  await proxy[Symbol.asyncDispose]()
})

const streamAt = (): string | undefined => well.collections.presence.get('', 'node-1')?.value.server
const idOf = (plane: ControlPlane): string =>
  well.collections.servers.list().find(({ value }) => value.apiUrl === plane.apiUrl)?.value.id ?? ''
const statusOf = async (plane: ControlPlane, bearer: string): Promise<number> =>
  (await ask(plane, 'GET', `${inDefault}/vms`, { token: bearer })).status

it('a server that is cut off answers nothing from memory, and what it had goes to the other', async () => {
  await eventually(() => assert.equal(streamAt(), idOf(cut)), timeoutMs)
  await ask(well, 'POST', `${inDefault}/serviceaccounts/robot`, { token })
  const issued = await ask(well, 'POST', `${inDefault}/serviceaccounts/robot/token`, { token, body: {} })
  const { token: robot } = (await issued.json()) as { token: string }
  await eventually(async () => assert.equal(await statusOf(cut, robot), 200), timeoutMs)
  const watch = await ask(cut, 'GET', `${inDefault}/vms?watch=true`, { token })
  const ended = watch.text()
  // It asks for more than there is, and waits.
  const body = { name: 'waits', image: 'empty', cpu: 8, memory: 1 }
  assert.equal((await ask(cut, 'POST', `${inDefault}/vms`, { token, body: { ...body, name: 'first' } })).status, 201)
  const waiting = ask(cut, 'POST', `${inDefault}/vms`, { token, body })
  const conditionsOf = () => cut.collections.vms.get('svc-default', 'waits')?.value.conditions ?? []
  await eventually(async () => assert.ok(conditionsOf().some(({ status }) => status === 'False')), timeoutMs)

  proxy.close()
  assert.equal((await ask(well, 'DELETE', `${inDefault}/serviceaccounts/robot`, { token })).status, 200)
  assert.equal(await statusOf(well, robot), 401)
  const told = await waiting
  assert.equal(told.status, 503)
  // The other one when it had written the record, and not yet looked at the image again.
  const told503 = /lost its connection to the store.*continues|which may or may not have been saved/
  assert.match(((await told.json()) as { message: string }).message, told503)
  assert.ok(told.headers.get('retry-after'))
  await ended
  assert.equal(await statusOf(cut, robot), 503)
  const ready = await fetch(`${cut.localUrl}/readyz`)
  assert.equal(ready.status, 503)

  await eventually(async () => assert.equal(streamAt(), idOf(well)), timeoutMs)
  assert.equal((await ask(well, 'DELETE', `${inDefault}/vms/first`, { token })).status, 200)
  await eventually(async () => {
    const vm = (await (await ask(well, 'GET', `${inDefault}/vms/waits`, { token })).json()) as { status: string }
    assert.equal(vm.status, 'Running')
  }, timeoutMs)

  proxy.open()
  await eventually(async () => assert.equal(await statusOf(cut, robot), 401), timeoutMs)
  assert.equal(await statusOf(cut, token), 200)
})

it('servers that are all without a store go on reading', async () => {
  proxy.open()
  const [member] = shared.etcd.members
  await member?.kill()
  // Longer than one that was cut off would take to say so.
  await sleep(6_000)
  for (const plane of [well, cut])
    await eventually(async () => assert.equal(await statusOf(plane, token), 200), timeoutMs)
  await member?.start()
  const made = async () => (await ask(cut, 'POST', `${inDefault}/serviceaccounts/later`, { token })).status
  await eventually(async () => assert.ok([201, 409].includes(await made())), timeoutMs)
})
