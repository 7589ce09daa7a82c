// A service on three members of etcd at the level of HTTP, for minutes: servers are killed 100 times under load, members
// die and pause. Nothing acknowledged is lost, nothing happens twice, and writes go on within 3 s of a member's death.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/store/open.ts'
import { type DevServer, program, startDev } from '../support/processes/dev-server.ts'
import { type SharedServers, startShared, tokenFor } from '../support/processes/shared-servers.ts'
import { type LoadBalancer, startLoadBalancer } from '../support/stand-ins/load-balancer.ts'
import { eventually } from '../support/tools/eventually.ts'
import { startHttpLoad } from '../support/tools/http-history.ts'

let shared: SharedServers
let balancer: LoadBalancer
let token: string
const folders: string[] = []
const servers: DevServer[] = []
const portOf = ({ apiUrl }: DevServer): number => Number(new URL(apiUrl).port)

async function start(n: number): Promise<void> {
  const args = ['--plain-http', '--store', shared.storeAddress]
  const env = { SVC3_MASTER_KEY: shared.masterKey }
  const server = await startDev(folders[n] ?? '', { command: [program, 'server'], args, env })
  servers[n] = server
  balancer.add(portOf(server))
  await eventually(async () => assert.ok(balancer.isUsed(portOf(server))), 60_000)
}

before(async () => {
  ;[shared, balancer] = [await startShared({ size: 3 }), await startLoadBalancer()]
  for (const n of [0, 1, 2]) {
    folders[n] = await shared.folder()
    await start(n)
  }
  token = await tokenFor(shared)
})
after(async () => {
  for (const server of servers) await server[Symbol.asyncDispose]()
  await balancer[Symbol.asyncDispose]()
  await shared[Symbol.asyncDispose]()
})

it('servers die 100 times at random moments', { timeout: 3_000_000 }, async (t) => {
  await using cleanup = new AsyncDisposableStack()
  const store = await openStore(shared.storeAddress)
  cleanup.defer(() => store.close())
  const load = await startHttpLoad(balancer.url, token, store, 'kills')
  const startsMs: number[] = []
  for (let kill = 0; kill < 100; kill++) {
    await sleep(Math.random() * 1_500)
    const n = kill % 3
    const server = servers[n] as DevServer
    await server.kill('SIGKILL')
    balancer.remove(portOf(server))
    const startMs = performance.now()
    await start(n)
    startsMs.push(performance.now() - startMs)
  }
  startsMs.sort((one, other) => one - other)
  const [fastest, median = 0, slowest] = [0, 50, 99].map((place) => (startsMs[place] ?? 0) / 1_000)
  t.diagnostic(`ready again after ${fastest} to ${slowest} s, half of them within ${median} s`)
  t.diagnostic(JSON.stringify(await load.finish()))
  // Not the slowest: that is the machine's, when others use it.
  assert.ok(median <= 5, `ready again after ${median} s`)
})

for (const round of [1, 2, 3])
  it(`the leading member dies (${round})`, { timeout: 300_000 }, async (t) => {
    await using cleanup = new AsyncDisposableStack()
    const store = await openStore(shared.storeAddress)
    cleanup.defer(() => store.close())
    const load = await startHttpLoad(balancer.url, token, store, `leader${round}`)
    await eventually(async () => assert.ok(load.acknowledged() > 50), 60_000)
    const leader = await shared.etcd.leader()
    load.takeLongestGapMs()
    await leader.kill()
    await sleep(6_000)
    const gapMs = load.takeLongestGapMs()
    await leader.start()
    await sleep(2_000)
    t.diagnostic(`no change for ${Math.round(gapMs)} ms; ${JSON.stringify(await load.finish())}`)
    assert.ok(gapMs <= 3_000, `no change for ${Math.round(gapMs)} ms`)
  })
