// Three members of etcd, three servers and two agents on hosts of their own, set up as docs/operate/several-servers.md
// says, then all of them restarted one after the other, while clients deploy and delete VMs through HAProxy, as that
// page sets it up. No request fails, though no client tries anything twice.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { listNodes } from '../../src/api/nodes/nodes.ts'
import { deleteVm, deployVm, getVm, listVms } from '../../src/api/vms/vms.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { httpTransport } from '../../src/client/http.ts'
import { createRevision } from '../../src/client/revision.ts'
import { makeFolder, program, svc3 } from '../support/processes/dev-server.ts'
import { openNetwork } from '../support/processes/hosts.ts'
import { type Service, service, setUpCluster } from '../support/processes/operated-cluster.ts'
import { tokenFor } from '../support/processes/shared-servers.ts'
import { eventually } from '../support/tools/eventually.ts'
import { haproxyPort, startHaproxy } from './haproxy.ts'

const workers = 3
const timeoutMs = 120_000
const params = { namespace: 'svc-default' }

it('everything is restarted in turn, and no request fails', { timeout: 1_200_000 }, async (t) => {
  await using cleanup = new AsyncDisposableStack()
  const folder = await makeFolder()
  cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
  const network = cleanup.use(await openNetwork())
  t.diagnostic(network.isReal ? 'hosts are network namespaces' : 'hosts are addresses of loopback')
  const front = await network.host('front')
  const publicUrl = new URL(`https://${front.address}:${haproxyPort(front)}`).origin
  const hosts = [await network.host('a'), await network.host('b'), await network.host('c')]
  const cluster = await setUpCluster(folder, hosts, publicUrl)
  const { members, servers } = cluster
  const all: Service[] = [...members, ...servers]
  cleanup.defer(async () => void (await Promise.all(all.map((each) => each.stop('SIGKILL')))))

  await Promise.all(members.map((member) => member.start()))
  const balancer = cleanup.use(await startHaproxy(front, folder, cluster.balancerConfig))
  const isUsed = ({ host }: Service) => eventually(async () => assert.ok(await balancer.isUsed(host.name)), timeoutMs)
  await Promise.all(servers.map((server) => server.start()))
  for (const server of servers) await isUsed(server)

  const [, fingerprint = ''] = /((?:[0-9A-F]{2}:){31}[0-9A-F]{2})/i.exec(servers[0]?.output() ?? '') ?? []
  const token = await tokenFor(cluster)
  const env = { SVC3_API_URL: publicUrl, SVC3_TOKEN: token, SVC3_FINGERPRINT: fingerprint }
  const run = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await svc3(words, { env, cwd: folder })
    assert.equal(code, 0, stderr)
    return stdout.trim()
  }
  const clientOf = (): Client =>
    createClient({
      baseUrl: publicUrl,
      transport: httpTransport({ maxSockets: 1, trust: { judge: () => undefined } }),
      token,
      retry: { attempts: 1 },
      timeoutMs: timeoutMs,
      revision: createRevision(),
    })
  const client = clientOf()
  const areReady = () =>
    eventually(async () => {
      const nodes = await client.listAll(listNodes, { params })
      assert.deepEqual(
        nodes.map(({ phase }) => phase),
        ['READY', 'READY'],
      )
    }, timeoutMs)
  const agents: Service[] = []
  for (const name of ['host-1', 'host-2']) {
    const host = await network.host(name)
    const words = ['agent', '--name', name, '--driver', 'simulated', '--architecture', 'amd64', '--cpu', '8']
    const data = ['--data', path.join(folder, name), '--join', await run('node', 'join-token')]
    const agent = service(host, program, [...words, ...data], {}, async (one) =>
      assert.match(one.output(), /connected/),
    )
    agents.push(agent)
    all.push(agent)
    await agent.start()
  }
  await areReady()
  await run('image', 'generate', 'blank', '1G')

  const stopping = new AbortController()
  let done = 0
  let longestMs = 0
  const timed = async <T>(work: Promise<T>): Promise<T> => {
    const startMs = performance.now()
    const result = await work
    longestMs = Math.max(longestMs, performance.now() - startMs)
    return result
  }
  const work = async (_: unknown, worker: number): Promise<void> => {
    const own = clientOf()
    for (let n = 0; !stopping.signal.aborted; n++) {
      const name = `w${worker}-${n}`
      const body = { name, image: 'blank', cpu: 1, memory: 0.5 }
      const made = await timed(own.call(deployVm, { params, body }))
      assert.equal(made.status, 'Running')
      assert.equal((await timed(own.call(getVm, { params: { ...params, vm: name } }))).uid, made.uid)
      await timed(own.call(deleteVm, { params: { ...params, vm: name } }))
      assert.ok(!(await timed(own.listAll(listVms, { params }))).some((vm) => vm.name === name))
      done += 1
    }
  }
  const working = Promise.all(Array.from({ length: workers }, work))
  // An error is thrown below, where the promise is awaited.
  working.catch(() => stopping.abort())
  const more = async (): Promise<void> => {
    const before = done
    await eventually(async () => assert.ok(done >= before + 2 * workers || stopping.signal.aborted), timeoutMs)
  }
  const restarted = async (what: string, each: Service, isBack: () => Promise<unknown>): Promise<void> => {
    if (stopping.signal.aborted) return
    longestMs = 0
    const before = done
    const code = await each.stop()
    // etcd ends by the signal that it was sent.
    if (what !== 'member') assert.equal(code, 0, each.output())
    await each.start()
    await isBack()
    await more()
    const seconds = (longestMs / 1_000).toFixed(1)
    t.diagnostic(`${what} ${each.host.name}: ${done - before} VMs deployed and deleted, longest request ${seconds} s`)
  }
  await more()
  for (const member of members) await restarted('member', member, async () => undefined)
  for (const server of servers) await restarted('server', server, () => isUsed(server))
  for (const agent of agents) await restarted('agent', agent, areReady)
  stopping.abort()
  await working
  t.diagnostic(`${done} VMs in all, ${4 * done} requests, none failed`)
  assert.deepEqual(await client.listAll(listVms, { params }), [])
  await Promise.all(agents.map((agent) => agent.stop()))
})
