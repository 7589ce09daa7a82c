// Three servers on three members of etcd, an agent connected to each: any request on any server, whichever one holds
// the stream of the node that it is about; and servers that are killed or stand still while VMs run on.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import ssh2 from 'ssh2'
import { dialTunnel } from '../../src/client/tunnel.ts'
import { openStore } from '../../src/store/open.ts'
import { type ServerProcess, ServersRig } from '../support/processes/servers.ts'
import { eventually } from '../support/tools/eventually.ts'

const vmsPath = '/namespaces/svc-default/vms'
const timeoutMs = 60_000

interface Vm {
  readonly name: string
  readonly node: string
  readonly status: string
}

let rig: ServersRig
let servers: ServerProcess[]
const serverIds = new Map<ServerProcess, string>()
/** By node, the server that it was given first. */
const places = new Map<string, ServerProcess>()

before(async () => {
  rig = await ServersRig.start({ members: 3 })
  servers = await Promise.all(['a', 'b', 'c'].map((name) => rig.server(name)))
  for (const [index, server] of servers.entries())
    serverIds.set(
      server,
      JSON.parse(await fs.readFile(path.join(rig.folder, 'abc'[index] ?? '', 'server.json'), 'utf8')).id,
    )
  const made = await servers[0]?.call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
  assert.equal(made?.status, 202, JSON.stringify(made?.body))
  await Promise.all(
    servers.map(async (server, index) => {
      const urls = [server, ...servers.filter((each) => each !== server)].map(({ apiUrl }) => apiUrl)
      const agent = await rig.agent(urls, server.joinToken, { name: `node-${index + 1}` })
      places.set(agent.name, server)
      await agent.ready
    }),
  )
})
after(() => rig[Symbol.asyncDispose]())

const [first, second, third] = [0, 1, 2].map((index) => () => servers[index] as ServerProcess) as [
  () => ServerProcess,
  () => ServerProcess,
  () => ServerProcess,
]

const deploy = async (server: ServerProcess, name: string, headers?: Record<string, string>): Promise<Vm> => {
  const { status, body } = await server.call('POST', vmsPath, { image: 'empty', name, cpu: 2, memory: 1 }, headers)
  assert.equal(status, 201, JSON.stringify(body))
  return body as Vm
}
const list = async (server: ServerProcess): Promise<readonly Vm[]> =>
  (await server.call('GET', vmsPath)).body.items as Vm[]

/** By whichever server: the console of a VM. */
const assertReached = async (server: ServerProcess, name: string): Promise<void> => {
  const { status, body } = await server.call('GET', `${vmsPath}/${name}/logs`)
  assert.equal(status, 200, JSON.stringify(body))
  assert.match(body, new RegExp(`${name} is up`))
}
const remove = async (server: ServerProcess, name: string): Promise<void> => {
  const { status, body } = await server.call('DELETE', `${vmsPath}/${name}`)
  assert.equal(status, 200, JSON.stringify(body))
}

describe('three servers', () => {
  it('three servers say, each of them, that a VM could go to the nodes of all', async () => {
    for (const server of servers)
      await eventually(async () => {
        const { body } = await server.call('POST', `${vmsPath}/estimate`, { image: 'empty', cpu: 2, memory: 1 })
        const fitting = (body.nodes as { name: string; fits: boolean }[]).filter(({ fits }) => fits)
        assert.deepEqual(fitting.map(({ name }) => name).toSorted(), [...places.keys()].toSorted())
      }, timeoutMs)
  })

  it('three servers place VMs on the nodes of all of them, and reach each through any', async () => {
    // Each fills a node: the leader has to see those of the others.
    for (const name of ['one', 'two', 'three']) await deploy(first(), name)
    const vms = await list(second())
    assert.equal(new Set(vms.map(({ node }) => node)).size, 3, JSON.stringify(vms))
    for (const server of servers) for (const { name } of vms) await assertReached(server, name)
  })

  it('three servers carry a connection to a port of a VM from a server that does not hold its node', async () => {
    const vm = (await list(first())).find(({ node }) => node === 'node-3')
    const { body } = await first().call('GET', `${vmsPath}/${vm?.name}`)
    const echo = net.createServer((socket) => socket.pipe(socket))
    echo.listen(Number(body.ssh), body.ip)
    await new Promise((resolve, reject) => echo.once('listening', resolve).once('error', reject))
    try {
      for (const server of servers) {
        const signal = AbortSignal.timeout(timeoutMs)
        const where = `/api/v1${vmsPath}/${vm?.name}/connect`
        const tunnel = await dialTunnel({ baseUrl: server.apiUrl, path: where, token: server.token, signal })
        tunnel.write('are you there?')
        const [answer] = await new Promise<Buffer[]>((resolve) => tunnel.once('data', (chunk) => resolve([chunk])))
        assert.equal(String(answer), 'are you there?')
        tunnel.destroy()
      }
    } finally {
      echo.close()
    }
  })

  it('three servers pass the password by which a disk is grown to the server that holds the node, and on to its agent', async () => {
    const vm = (await list(first())).find(({ node }) => node === 'node-3')
    const { body } = await first().call('GET', `${vmsPath}/${vm?.name}`)
    const { private: hostKey } = ssh2.utils.generateKeyPairSync('ed25519')
    const tried = Promise.withResolvers<string>()
    const guest = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
      client.on('error', () => undefined)
      client.on('authentication', (context) => {
        if (context.method === 'password') tried.resolve(`${context.username} ${context.password}`)
        context.reject(['password'])
      })
    })
    guest.listen(Number(body.ssh), body.ip)
    try {
      const login = { size: 20, user: 'admin', password: 'of the guest' }
      const grown = await first().call('POST', `${vmsPath}/${vm?.name}/resize`, login)
      assert.equal(grown.status, 200, JSON.stringify(grown.body))
      assert.equal(await tried.promise, 'admin of the guest')
    } finally {
      guest.close()
    }
  })

  it('three servers answer a repeated request once, though it comes to two of them at the same time', async () => {
    await remove(second(), 'one')
    const headers = { 'idempotency-key': 'the-same-request' }
    const [one, other] = await Promise.all([deploy(first(), 'again', headers), deploy(third(), 'again', headers)])
    assert.deepEqual(one, other)
    assert.equal((await list(second())).filter(({ name }) => name === 'again').length, 1)
  })

  it('three servers go on when the one that holds a stream is killed, and no VM is lost on the way', async () => {
    const [victim, ...left] = servers.toReversed() as [ServerProcess, ServerProcess, ServerProcess]
    const vm = (await list(first())).find(({ node }) => places.get(node) === victim)
    assert.ok(vm)
    const [survivor] = left
    const lost: string[] = []
    const watching = new AbortController()
    const watch = await fetch(`${survivor.apiUrl}/api/v1${vmsPath}?watch=true`, {
      headers: { authorization: `Bearer ${survivor.token}` },
      signal: watching.signal,
    })
    const watched = (async () => {
      for await (const chunk of watch.body ?? []) {
        const text = Buffer.from(chunk).toString()
        if (/"powerState":"(?!running)/.test(text)) lost.push(text)
      }
    })().catch(() => undefined)
    await victim.kill()
    await eventually(() => assertReached(survivor, vm.name), timeoutMs)
    // Its node gets new work, by whichever server leads now.
    watching.abort()
    await watched
    assert.deepEqual(lost, [])
    await remove(survivor, vm.name)
    const next = await deploy(left[1], 'next')
    assert.equal(next.node, vm.node)
    servers = left.toReversed()
  })

  it('three servers have another leader when theirs stands still, and every VM is placed once when it wakes', async () => {
    const store = await openStore(rig.storeAddress)
    try {
      const holder = async (): Promise<string> =>
        String(((await store.get('/leadership/controllers'))?.value as { holder?: string } | undefined)?.holder)
      const before = await holder()
      const leader = servers.find(({ apiUrl }) => before.startsWith(`${new URL(apiUrl).host}/`))
      assert.ok(leader, before)
      const server = servers.find((each) => each !== leader) as ServerProcess
      // Nodes that the one that stands still does not hold.
      const free = (await store.list('/presence/')).entries
        .map(({ value }) => value as { node: string; server: string })
        .filter((each) => each.server !== serverIds.get(leader))
        .map(({ node }) => node)
      const names = (await list(server)).filter(({ node }) => free.includes(node)).map(({ name }) => name)
      assert.ok(names.length > 0)
      leader.child.kill('SIGSTOP')
      await eventually(async () => {
        const now = await holder()
        assert.ok(now !== before && now !== 'null', now)
      }, timeoutMs)
      for (const name of names) await remove(server, name)
      const again = names.map((_, index) => `later-${index}`)
      await Promise.all(again.map((name) => deploy(server, name)))
      leader.child.kill('SIGCONT')
      for (const name of again) await eventually(() => assertReached(leader, name), timeoutMs)
      // What the old leader thought of has come to nothing: each VM is on one node, and each node has one.
      const placed = await list(leader)
      const { items } = (await leader.call('GET', '/namespaces/svc-default/nodes')).body
      const held = (items as { vms: string[] }[]).flatMap(({ vms }) => vms)
      assert.deepEqual(held.toSorted(), placed.map(({ name }) => `svc-default/${name}`).toSorted())
      for (const name of again) assert.equal(placed.find((vm) => vm.name === name)?.status, 'Running')
    } finally {
      await store.close()
    }
  })
})
