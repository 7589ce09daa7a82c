// A host with a real guest, whose network loses packets, then all of them silently for ten minutes: the
// node stays READY in the first case; in the second it is NOT READY after 40 s and gets nothing, its guest is not
// touched, and it comes back by itself. CUT_SECONDS=120 for a shorter cut.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { generateImage } from '../../src/api/images/images.ts'
import { createJoinToken, listNodes } from '../../src/api/nodes/nodes.ts'
import { deleteVm, deployVm, getVm } from '../../src/api/vms/vms.ts'
import { createClient } from '../../src/client/client.ts'
import { httpTransport } from '../../src/client/http.ts'
import { program, startDev } from '../support/processes/dev-server.ts'
import { openNetwork, type TestHost } from '../support/processes/hosts.ts'
import { service } from '../support/processes/operated-cluster.ts'
import { startShared, tokenFor } from '../support/processes/shared-servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const params = { namespace: 'svc-default' }
const timeoutMs = 300_000
const cutMs = Number(process.env.CUT_SECONDS ?? 600) * 1_000
const lossyMs = 90_000

/** What the host's network does to packets, both ways. */
async function iptables(host: TestHost, ...words: string[]): Promise<void> {
  for (const chain of ['INPUT', 'OUTPUT']) {
    const child = host.spawn(
      'iptables',
      words.map((word) => word.replace('CHAIN', chain)),
      { stdio: 'inherit' },
    )
    const code = await new Promise((resolve) => child.once('exit', resolve))
    assert.equal(code, 0, `iptables ${words.join(' ')}`)
  }
}

/** QEMUs whose files are below this folder, and who looks after them. */
async function guestsOf(folder: string): Promise<string[]> {
  const pids = (await fs.readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(
    pids.map(async (pid) => [pid, await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
  )
  return lines.filter(([, line]) => line.includes('qemu-system') && line.includes(folder)).map(([pid]) => pid)
}

it('a host whose network is lossy, then cut, and well again', { timeout: 2_400_000 }, async (t) => {
  await using cleanup = new AsyncDisposableStack()
  const network = cleanup.use(await openNetwork())
  assert.ok(network.isReal, 'this needs network namespaces: run it as root')
  const shared = cleanup.use(await startShared())
  const args = ['--store', shared.storeAddress]
  const env = { SVC3_MASTER_KEY: shared.masterKey }
  const listen = `${network.address}:0`
  const server = cleanup.use(await startDev(await shared.folder(), { command: [program, 'server'], listen, args, env }))
  const token = await tokenFor(shared)
  const client = createClient({
    baseUrl: server.apiUrl,
    transport: httpTransport({ trust: { judge: () => undefined } }),
    token,
    timeoutMs: timeoutMs,
  })

  const host = await network.host('far')
  const folder = await shared.folder()
  const { join = '' } = await client.call(createJoinToken, { params, body: {} })
  const words = ['agent', '--name', 'far', '--architecture', 'amd64', '--data', path.join(folder, 'agent')]
  const agent = service(host, program, [...words, '--join', join], {}, async (one) =>
    assert.match(one.output(), /connected/),
  )
  cleanup.defer(async () => {
    await agent.stop()
    // Guests outlive their agent, which is the point of it.
    for (const pid of await guestsOf(folder)) process.kill(Number(pid), 'SIGKILL')
  })
  await agent.start()
  const phase = async (): Promise<string> => (await client.listAll(listNodes, { params }))[0]?.phase ?? ''
  const deploy = (name: string, wait: boolean) =>
    client.call(deployVm, { params, query: { wait }, body: { name, image: 'blank', cpu: 1, memory: 0.5 } })
  const remove = (name: string) => client.call(deleteVm, { params: { ...params, vm: name } })
  await client.call(generateImage, { params, body: { name: 'blank', size: '1G' } })
  await eventually(async () => assert.equal(await phase(), 'READY'), timeoutMs)
  const before = await deploy('guest', true)
  const guests = await guestsOf(folder)
  assert.ok(guests.length > 0)

  await iptables(host, '-A', 'CHAIN', '-m', 'statistic', '--mode', 'random', '--probability', '0.1', '-j', 'DROP')
  const lossyUntilMs = performance.now() + lossyMs
  let rounds = 0
  for (; performance.now() < lossyUntilMs; rounds++) {
    await deploy(`lossy-${rounds}`, true)
    await remove(`lossy-${rounds}`)
    assert.equal(await phase(), 'READY')
  }
  await iptables(host, '-F', 'CHAIN')
  t.diagnostic(`${rounds} VMs deployed and deleted while a tenth of the packets was lost each way`)

  await iptables(host, '-A', 'CHAIN', '-j', 'DROP')
  const cutAtMs = performance.now()
  await eventually(async () => assert.equal(await phase(), 'NOT READY'), timeoutMs)
  const noticedMs = performance.now() - cutAtMs
  t.diagnostic(`NOT READY ${(noticedMs / 1_000).toFixed(1)} s after the cut`)
  // The last word came up to a heartbeat before the cut; streams are looked at every six seconds.
  assert.ok(noticedMs > 25_000 && noticedMs < 60_000)
  const during = await client.call(getVm, { params: { ...params, vm: 'guest' } })
  assert.equal(during.powerState, 'unknown')
  await deploy('later', false)
  await sleep(cutMs - noticedMs)
  const later = await client.call(getVm, { params: { ...params, vm: 'later' } })
  assert.deepEqual([later.status, later.node ?? ''], ['Pending', ''])
  assert.deepEqual(await guestsOf(folder), guests)

  await iptables(host, '-F', 'CHAIN')
  const healedAtMs = performance.now()
  await eventually(async () => assert.equal(await phase(), 'READY'), 60_000)
  t.diagnostic(`READY ${((performance.now() - healedAtMs) / 1_000).toFixed(1)} s after a cut of ${cutMs / 1_000} s`)
  await eventually(async () => {
    const after = await client.call(getVm, { params: { ...params, vm: 'guest' } })
    assert.deepEqual([after.powerState, after.uid, after.ssh], ['running', before.uid, before.ssh])
  }, timeoutMs)
  await eventually(async () => {
    const placed = await client.call(getVm, { params: { ...params, vm: 'later' } })
    assert.deepEqual([placed.status, placed.node], ['Running', 'far'])
  }, timeoutMs)
  const now = await guestsOf(folder)
  assert.ok(
    guests.every((pid) => now.includes(pid)),
    'the guest is the same process as before',
  )
  for (const name of ['guest', 'later']) await remove(name)
})
