// A server and an agent as processes of their own, over HTTPS, as on two hosts: joining with a token, kill -9 of either
// and of both, and what a node that was removed is told.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { greeting, openGuest, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, program, startDev, svc3 } from '../support/processes/dev-server.ts'
import { ownAddress } from '../support/tools/own-address.ts'

let folder: string
let server: DevServer
let agent: ChildProcess | undefined
/** What the latest agent said. */
let output = ''
let latest: ChildProcess | undefined
const ends = new Map<ChildProcess, Promise<number | null>>()
let listen = `${ownAddress()}:0`
const vms = '/api/v1/namespaces/svc-default/vms'

/** A server without embedded nodes. It keeps its port across restarts, as a real one does. */
async function startServer(): Promise<void> {
  server = await startDev(path.join(folder, 'server'), { listen, args: ['--nodes', 'amd64=0,arm64=0'] })
  listen = new URL(server.apiUrl).host
}

function startAgent(args: readonly string[] = [], input?: string): ChildProcess {
  const words = ['agent', '--name', 'host-1', '--architecture', 'amd64', '--data', path.join(folder, 'agent'), ...args]
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'] })
  output = ''
  latest = child
  ends.set(child, new Promise((resolve) => child.once('close', resolve)))
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      if (latest === child) output += chunk
    })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input ?? '')
  return child
}

/** When all that it said has been read as well. */
const ended = (child: ChildProcess): Promise<number | null> => ends.get(child) ?? assert.fail()

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (!child) return
  child.kill('SIGKILL')
  await ended(child)
}

async function until(test: () => Promise<boolean>, what: string, timeoutMs = 120_000): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await test().catch(() => false))) {
    assert.ok(performance.now() < endMs, `${what} takes too long; the agent said:\n${output.slice(-2_000)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

interface Node {
  readonly name: string
  readonly phase: string
  readonly vms: readonly string[]
}
const nodes = async () => (await server.call('GET', '/api/v1/namespaces/svc-default/nodes')).body.items as Node[]
const show = async (name: string) => (await server.call('GET', `${vms}/${name}`)).body as never as Shown
interface Shown {
  readonly powerState: string
  readonly status: string
  readonly ip: string
  readonly ssh: number
}

before(async () => {
  folder = await makeFolder()
  await seedTiny(path.join(folder, 'agent/images'), ['amd64'])
  await startServer()
})
after(async () => {
  await server.call('DELETE', `${vms}/demo`).catch(() => undefined)
  await kill(agent)
  await server.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

describe('an agent of its own', () => {
  it('an agent of its own is refused without a token, and with a wrong one', async () => {
    const without = startAgent(['--api-url', server.apiUrl])
    assert.equal(await ended(without), 1)
    assert.match(output, /join-token/)
    const wrong = startAgent(['--api-url', server.apiUrl, '--join-token-stdin'], 'nonsense')
    assert.equal(await ended(wrong), 1)
    assert.match(output, /join token is not valid/)
    assert.deepEqual(await nodes(), [])
  })

  it('an agent of its own joins with a token, once, and lives by its own key', async () => {
    const { stdout, code } = await svc3(['node', 'join-token'], { env: { SVC3_DATA: path.join(folder, 'server') } })
    assert.equal(code, 0)
    const token = stdout.trim()
    agent = startAgent(['--api-url', server.apiUrl, '--join-token-stdin'], token)
    await until(async () => (await nodes())[0]?.phase === 'READY', 'joining')
    const { mode } = await fs.stat(path.join(folder, 'agent/node.json'))
    assert.equal(mode & 0o777, 0o600)
    assert.ok(!output.includes(token))
    agent.kill('SIGTERM')
    assert.equal(await ended(agent), 0)
    agent = startAgent()
    await until(async () => (await nodes())[0]?.phase === 'READY', 'coming back without a token')
  })

  it('an agent of its own deploys, and its VM outlives kill -9 of the agent, of the server, and of both', async () => {
    const { status, body } = await server.call('POST', vms, { image: 'tiny-amd64', name: 'demo', cpu: 1, memory: 0.3 })
    assert.equal(status, 201, String(body.message))
    const place = body as never as Shown
    using inside = await openGuest(place)
    const boot = await inside.run('cat /proc/sys/kernel/random/boot_id')

    await kill(agent)
    assert.match((await greeting(place.ip, place.ssh)) ?? '', /^SSH-/)
    agent = startAgent()
    await until(async () => (await show('demo')).powerState === 'running' && (await isConnected()), 'adopting the VM')

    await server.kill('SIGKILL')
    assert.match((await greeting(place.ip, place.ssh)) ?? '', /^SSH-/)
    await startServer()
    await until(isConnected, 'coming back to the server')

    await Promise.all([kill(agent), server.kill('SIGKILL')])
    await startServer()
    agent = startAgent()
    await until(isConnected, 'coming back, both of them')
    using again = await openGuest(place)
    assert.equal(await again.run('cat /proc/sys/kernel/random/boot_id'), boot, 'it was never restarted')
  })

  it('an agent of its own removes what was deleted while it was away', async () => {
    await kill(agent)
    const { status } = await server.call('DELETE', `${vms}/demo?force=true`)
    assert.equal(status, 200)
    agent = startAgent()
    await until(async () => (await fs.readdir(path.join(folder, 'agent/vms'))).length === 0, 'removing it')
  })

  it('an agent of its own ends when its node was removed', async () => {
    const { status } = await server.call('DELETE', '/api/v1/namespaces/svc-default/nodes/host-1')
    assert.equal(status, 200)
    assert.ok(agent)
    assert.equal(await ended(agent), 1)
    assert.match(output, /host-1/)
  })
})

/** A tunnel to its console works: the stream is open. */
const isConnected = async (): Promise<boolean> => {
  const headers = { authorization: `Bearer ${server.token}` }
  const { status } = await fetch(`${server.apiUrl}${vms}/demo/logs?tail=1`, { headers })
  return status === 200
}
