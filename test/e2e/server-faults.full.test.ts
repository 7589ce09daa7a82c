// Three members of etcd, two servers behind a load balancer, a node: without a quorum clients are told to come back, VMs run
// on, and it heals by itself. What they were told when members and servers die is history.full.test.ts's.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { type DevServer, program, startDev } from '../support/processes/dev-server.ts'
import { ask, type SharedServers, startShared, tokenFor } from '../support/processes/shared-servers.ts'
import { type LoadBalancer, startLoadBalancer } from '../support/stand-ins/load-balancer.ts'
import { eventually } from '../support/tools/eventually.ts'
import { simulatedVms } from '../support/tools/simulated-vms.ts'

let shared: SharedServers
let balancer: LoadBalancer
let token: string
let agent: ChildProcess
let agentFolder: string
let vmUid: string
const folders: string[] = []
const servers: DevServer[] = []
const portOf = ({ apiUrl }: DevServer): number => Number(new URL(apiUrl).port)
const longMs = 60_000
const vms = '/namespaces/svc-default/vms'

async function start(n: number): Promise<void> {
  const folder = folders[n] ?? ''
  const args = ['--plain-http', '--store', shared.storeAddress]
  const server = await startDev(folder, {
    command: [program, 'server'],
    args,
    env: { SVC3_MASTER_KEY: shared.masterKey },
  })
  servers[n] = server
  balancer.add(portOf(server))
  await eventually(async () => assert.ok(balancer.isUsed(portOf(server))), longMs)
}

before(async () => {
  shared = await startShared({ size: 3 })
  balancer = await startLoadBalancer()
  for (const n of [0, 1]) folders[n] = await shared.folder()
  await start(0)
  token = await tokenFor(shared)
  const join = await ask(all(), 'POST', '/namespaces/svc-default/jointokens', { token, body: {} })
  assert.equal(join.status, 201, await join.clone().text())
  agentFolder = await shared.folder()
  await fs.writeFile(`${agentFolder}/token`, ((await join.json()) as { token: string }).token)
  const words = ['agent', '--name', 'host-1', '--driver', 'simulated', '--architecture', 'amd64']
  const place = ['-a', balancer.url, '--data', `${agentFolder}/agent`, '--join-token-file', `${agentFolder}/token`]
  agent = spawn(program, [...words, ...place], { stdio: 'ignore' })
  const images = '/namespaces/svc-default/images'
  assert.equal((await ask(all(), 'POST', images, { token, body: { name: 'blank', size: '1G' } })).status, 202)
  await eventually(async () => {
    const image = (await (await ask(all(), 'GET', `${images}/blank`, { token })).json()) as { state: string }
    assert.equal(image.state, 'Ready')
  }, longMs)
  const deployed = await ask(all(), 'POST', vms, { token, body: { name: 'demo', image: 'blank', cpu: 1 } })
  assert.equal(deployed.status, 201, await deployed.clone().text())
  vmUid = ((await deployed.json()) as { uid: string }).uid
  await start(1)
})
after(async () => {
  agent?.kill('SIGKILL')
  for (const server of servers) await server[Symbol.asyncDispose]()
  await balancer?.[Symbol.asyncDispose]()
  await shared?.[Symbol.asyncDispose]()
})

/** Through the load balancer. */
const all = (): { localUrl: string } => ({ localUrl: balancer.url })

const readiness = async ({ apiUrl }: { readonly apiUrl: string }): Promise<string> => {
  const answer = await fetch(`${apiUrl}/readyz`)
  return `${answer.status} ${await answer.text()}`
}

describe('a service on three members of etcd', () => {
  it('a service on three members of etcd says that it cannot without a quorum, keeps its VMs, and heals', {
    timeout: 170_000,
  }, async () => {
    const [first, second] = shared.etcd.members
    await Promise.all([first?.kill(), second?.kill()])
    for (const server of servers) {
      const refused = await ask({ localUrl: server.apiUrl }, 'POST', '/namespaces', { token, body: { name: 'svc-no' } })
      assert.equal(refused.status, 503, await refused.clone().text())
      assert.ok(Number(refused.headers.get('retry-after')) > 0)
      // What is in memory is read on, also through a load balancer.
      assert.match(await (await ask({ localUrl: server.apiUrl }, 'GET', vms, { token })).text(), new RegExp(vmUid))
      await eventually(async () => assert.match(await readiness(server), /^200 .*changes are refused/), longMs)
      assert.equal((await fetch(`${server.apiUrl}/healthz`)).status, 200)
    }
    await Promise.all([first?.start(), second?.start()])
    for (const server of servers)
      await eventually(async () => assert.match(await readiness(server), /^200 .*"ready"/), longMs)
    await eventually(async () => {
      const made = await ask(all(), 'POST', '/namespaces', { token, body: { name: 'svc-healed' } })
      assert.ok([201, 409].includes(made.status), await made.text())
    }, longMs)
    const vm = (await (await ask(all(), 'GET', `${vms}/demo`, { token })).json()) as { uid: string; status: string }
    assert.deepEqual([vm.uid, vm.status, agent.exitCode], [vmUid, 'Running', null])
    assert.ok(simulatedVms(`${agentFolder}/agent`).includes(vmUid), 'the VM is on its host')
  })
})
