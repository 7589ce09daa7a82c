// The informer of the official JavaScript client of Kubernetes over a thousand VMs, behind a load balancer: the server
// that it is connected to is killed in the middle, and it has seen every change once.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { after, before, describe, it } from 'node:test'
import { KubeConfig, type KubernetesListObject, type KubernetesObject, makeInformer } from '@kubernetes/client-node'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { type ServerProcess, ServersRig } from '../support/processes/servers.ts'
import { type LoadBalancer, startLoadBalancer } from '../support/stand-ins/load-balancer.ts'
import { eventually } from '../support/tools/eventually.ts'

const vmCount = 1_000
const clients = 16
const path = '/apis/orka.macstadium.com/v1/namespaces/svc-default/virtualmachineinstances'

interface Vm extends KubernetesObject {
  readonly status: { readonly phase: string }
}
type Seen = readonly [verb: string, name: string | undefined, version: string | undefined]

let rig: ServersRig
let servers: ServerProcess[]
let balancer: LoadBalancer
let certificate: string

before(async () => {
  rig = await ServersRig.start({ isKubernetes: true })
  servers = await Promise.all(['a', 'b', 'c'].map((name) => rig.server(name)))
  const [server] = servers as [ServerProcess]
  const made = await server.call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
  assert.equal(made.status, 202, JSON.stringify(made.body))
  certificate = (await server.call('GET', '/cluster-info')).body.certData
  balancer = await startLoadBalancer()
  for (const { kubernetesUrl = '' } of servers) balancer.add(kubernetesUrl)
  const urls = servers.map(({ apiUrl }) => apiUrl)
  const { body } = await server.call('POST', '/namespaces/svc-default/jointokens', { reusable: true })
  await Promise.all(
    Array.from({ length: 10 }, async (_, n) => {
      const { ready } = await rig.agent(urls, body.token, {
        driver: new SimulatedDriver({ architectures: ['amd64'] }),
        capacity: { architecture: 'amd64', ip: `127.2.0.${n + 1}`, cpu: vmCount / 10, memoryMiB: 1_048_576 },
      })
      await ready
    }),
  )
})
after(async () => {
  await balancer[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

/** Of one server, by its own port. */
async function get(
  { kubernetesUrl = '', token }: ServerProcess,
  query = '',
): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    https
      .get(`${kubernetesUrl}${path}${query}`, { ca: certificate, agent: false, headers }, async (response) => {
        let text = ''
        for await (const chunk of response.setEncoding('utf8')) text += chunk
        resolve({ status: response.statusCode ?? 0, text })
      })
      .on('error', reject)
  })
}

const verbs: Readonly<Record<string, string>> = { ADDED: 'add', MODIFIED: 'update', DELETED: 'delete' }

/** What a watch has from one version to another. */
async function historyOf({ kubernetesUrl = '', token }: ServerProcess, from: string, to: string): Promise<Seen[]> {
  const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${from}`
  const headers = { authorization: `Bearer ${token}` }
  const request = https.get(`${kubernetesUrl}${path}${query}`, { ca: certificate, agent: false, headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const seen: Seen[] = []
  let rest = ''
  // Leaving the loop ends the watch.
  for await (const chunk of response.setEncoding('utf8')) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: Vm }
      const { name, resourceVersion = '' } = object.metadata ?? {}
      if (type !== 'BOOKMARK') seen.push([verbs[type] ?? type, name, resourceVersion])
      else if (BigInt(resourceVersion) >= BigInt(to)) return seen
    }
  }
  throw new Error(`the watch ended after ${seen.length} events`)
}

const listed = async (server: ServerProcess): Promise<KubernetesListObject<Vm>> =>
  JSON.parse((await get(server)).text) as KubernetesListObject<Vm>

const byName = (vms: readonly Vm[]): Map<string, Vm> =>
  new Map(vms.map((vm) => [vm.metadata?.name ?? '', vm] as const).toSorted(([a], [b]) => (a < b ? -1 : 1)))

/** Through whichever server lives; one that is killed may have done what it was asked, or not. */
async function insist(method: string, where: string, fine: readonly number[], body?: object): Promise<void> {
  await eventually(async () => {
    const server = servers[Math.floor(Math.random() * servers.length)] as ServerProcess
    const { status, body: answer } = await server.call(method, `/namespaces/svc-default/vms${where}`, body)
    assert.ok(fine.includes(status), JSON.stringify(answer))
  })
}

/** An informer as clients run it: restarted after every error. */
function startInformer(token: string) {
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    {
      name: 'svc3',
      server: balancer.url.replace('http:', 'https:'),
      caData: Buffer.from(certificate).toString('base64'),
      skipTLSVerify: false,
    },
    { name: 'admin', token },
  )
  const first = Promise.withResolvers<KubernetesListObject<Vm>>()
  let lists = 0
  const informer = makeInformer<Vm>(config, path, async () => {
    lists++
    const list = await listed(servers[0] as ServerProcess)
    first.resolve(list)
    return list
  })
  const seen: Seen[] = []
  for (const verb of ['add', 'update', 'delete'] as const)
    informer.on(verb, ({ metadata }) => seen.push([verb, metadata?.name, metadata?.resourceVersion]))
  let errors = 0
  let isStopped = false
  informer.on('error', () => {
    errors++
    setTimeout(() => {
      // It may have been stopped since; that is told as one error more.
      if (!isStopped) void informer.start()
    }, 50)
  })
  const stop = async (): Promise<void> => {
    isStopped = true
    await informer.stop()
  }
  const start = async (): Promise<void> => {
    isStopped = false
    await informer.start()
  }
  return { informer, seen, first: first.promise, start, stop, lists: () => lists, errors: () => errors }
}

describe('the informer of the JavaScript client', () => {
  it('an informer over a thousand VMs misses and doubles nothing when its server is killed', async (t) => {
    await eventually(() => assert.ok(servers.every(({ kubernetesUrl = '' }) => balancer.isUsed(kubernetesUrl))))
    const watched = startInformer((servers[0] as ServerProcess).token)
    t.after(watched.stop)
    await watched.informer.start()
    const { resourceVersion = '' } = (await watched.first).metadata ?? {}
    let next = 0
    let killed: ServerProcess | undefined
    const kill = async (): Promise<void> => {
      killed = servers.find(({ kubernetesUrl = '' }) => balancer.connectionsOf(kubernetesUrl) > 0)
      assert.ok(killed, 'the informer is connected to nobody')
      servers = servers.filter((each) => each !== killed)
      await killed.kill()
    }
    const client = async (): Promise<void> => {
      for (let n = next++; n < vmCount; n = next++) {
        if (n === vmCount / 2) await kill()
        const name = `vm-${n}`
        await insist('POST', '?wait=false', [202, 409], { name, image: 'empty', cpu: 1, memory: 0.5 })
        if (n % 10 === 0) await insist('DELETE', `/${name}`, [200, 404])
      }
    }
    await Promise.all(Array.from({ length: clients }, client))
    assert.ok(killed)
    const [server] = servers as [ServerProcess]
    const all = await eventually(async () => {
      const { items, metadata } = await listed(server)
      assert.equal(items.length, (vmCount * 9) / 10)
      assert.deepEqual([...new Set(items.map(({ status }) => status.phase))], ['Running'])
      // All writes have ended, so what the informer must have seen is known.
      return { items, version: metadata?.resourceVersion ?? '' }
    })
    await eventually(() => assert.deepEqual(byName(watched.informer.list()), byName(all.items)))
    await watched.stop()
    assert.equal(watched.lists(), 1, 'it went on from the version that it had, and did not list again')
    assert.ok(watched.errors() > 0, 'it noticed the kill')
    // The whole history, from a server that it may never have asked.
    const history = await historyOf(servers.at(-1) as ServerProcess, resourceVersion, all.version)
    assert.ok(history.length >= 2 * vmCount)
    assert.deepEqual(watched.seen, history)
  })

  it('a version of one server is good at another: a list waits for it, pages and initial events are not older', async () => {
    const [one, other] = servers as [ServerProcess, ServerProcess]
    for (let round = 0; round < 20; round++) {
      const name = `fresh-${round}`
      const vmPath = `/namespaces/svc-default/vms?wait=false`
      assert.equal((await one.call('POST', vmPath, { name, image: 'empty', cpu: 1, memory: 0.5 })).status, 202)
      const { metadata } = JSON.parse((await get(one, '?limit=1')).text) as KubernetesListObject<Vm>
      const { resourceVersion = '', _continue: _, ...rest } = metadata ?? {}
      const token = (rest as { continue?: string }).continue ?? ''
      const query = [
        `?resourceVersion=${resourceVersion}&resourceVersionMatch=NotOlderThan`,
        `?limit=2000&continue=${token}`,
        `?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=${resourceVersion}&timeoutSeconds=1`,
      ][round % 3]
      const { status, text } = await get(other, query)
      assert.equal(status, 200, text)
      assert.ok(text.includes(`"${name}"`), `${query} is older than what it names`)
    }
  })

  it('a version that is compacted is answered with 410, and the informer lists again', async (t) => {
    const [server] = servers as [ServerProcess]
    const watched = startInformer(server.token)
    t.after(watched.stop)
    await watched.start()
    const { resourceVersion = '' } = (await watched.first).metadata ?? {}
    await watched.stop()
    for (let round = 0; round < 20; round++) await insist('DELETE', `/fresh-${round}`, [200, 404])
    const { items } = await eventually(async () => {
      const list = await listed(server)
      assert.equal(list.items.length, (vmCount * 9) / 10)
      return list
    })
    const { header } = await rig.etcd.post('/v3/kv/range', { key: Buffer.from('any').toString('base64') })
    await rig.etcd.post('/v3/kv/compaction', { revision: (header as { revision: string }).revision })
    // The others still have it in memory.
    const fresh = await rig.server('d')
    for (const { kubernetesUrl = '' } of servers) balancer.remove(kubernetesUrl)
    balancer.add(fresh.kubernetesUrl ?? '')
    await eventually(() => assert.ok(balancer.isUsed(fresh.kubernetesUrl ?? '')))
    const { status, text } = await get(fresh, `?watch=true&resourceVersion=${resourceVersion}&timeoutSeconds=1`)
    assert.equal(status, 410, text)
    assert.equal(JSON.parse(text).reason, 'Expired')
    await watched.start()
    await eventually(() => assert.deepEqual(byName(watched.informer.list()), byName(items)))
    assert.equal(watched.lists(), 2)
  })
})
