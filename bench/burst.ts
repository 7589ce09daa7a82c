// Bursts of VMs on simulated nodes: how fast they are requested, all run, and are deleted. Beside VM configurations,
// created through the same server: records that are as durable, and that nothing has to be done for.
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { allRunning, eachOf, lostNodes, readMeanwhile, sized } from './measure.ts'
import { nodeRecord } from './records.ts'
import { type BenchRow, compared, limited } from './row.ts'
import type { LightNode } from './scale/agents.ts'
import { Agents } from './scale.ts'
import { percentile } from './soak/samples.ts'

const clients = 32
const count = sized(2_000, 20)
const rounds = sized(8, 2)
/** Of them: V8 compiles for that long, and servers run for weeks. */
const warmUp = sized(3, 1)
const numbers = Array.from({ length: count }, (_, index) => index)
const namespace = '/api/v1/namespaces/svc-default'
const shape = { image: 'tiny-amd64', cpu: 1, memory: 0.5 }

type Send = (method: string, path: string, body?: unknown) => Promise<void>

/** Node's own client costs as much as the server; this one leaves the machine to what is measured. */
function senderTo({ apiUrl, token }: DevServer): Send & Disposable {
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients })
  const send: Send = async (method, path, body) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      'content-length': Buffer.byteLength(text),
    }
    const request = http.request(apiUrl + namespace + path, { method, headers, agent })
    request.end(text)
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    if ((answer.statusCode ?? 500) >= 300) throw new Error(`${method} ${path} was refused: ${answer.statusCode}`)
  }
  return Object.assign(send, { [Symbol.dispose]: () => agent.destroy() })
}

type Phase = 'configs' | 'posts' | 'running' | 'deletes'

/** Ends each of them in turn. */
export async function* burst(server: DevServer, round: number): AsyncGenerator<Phase> {
  using send = senderTo(server)
  const each = (work: (index: number) => Promise<void>): Promise<void> => eachOf(numbers, clients, work)
  await each((index) => send('POST', '/vmconfigs', { name: `c-${round}-${index}`, ...shape }))
  yield 'configs'
  await each((index) => send('POST', '/vms?wait=false', { name: `v-${round}-${index}`, ...shape }))
  yield 'posts'
  await allRunning(server, count)
  yield 'running'
  await each((index) => send('DELETE', `/vms/v-${round}-${index}`))
  yield 'deletes'
}

/** So many a second. */
async function rates(server: DevServer, round: number): Promise<Readonly<Record<Phase, number>>> {
  const ms: Record<Phase, number> = { configs: 0, posts: 0, running: 0, deletes: 0 }
  let startMs = performance.now()
  for await (const phase of burst(server, round)) {
    ms[phase] = performance.now() - startMs
    startMs = performance.now()
  }
  const rate = (tookMs: number): number => (count * 1_000) / tookMs
  const { configs, posts, running, deletes } = ms
  return { configs: rate(configs), posts: rate(posts), running: rate(posts + running), deletes: rate(deletes) }
}

/** Light agents, in a process of their own; as many as the others. */
async function joinNodes(server: DevServer): Promise<LightNode[]> {
  const nodes: LightNode[] = []
  for (let n = 0; n < sized(200, 2); n++) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
    const { name, report } = nodeRecord(n, 64, spki)
    const { token } = (await server.call('POST', `${namespace}/jointokens`, {})).body
    const { body, status } = await server.call('POST', '/api/v1/agent/join', { token, name, publicKey: spki })
    if (status !== 201) throw new Error(`a node may not join: ${JSON.stringify(body)}`)
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
    nodes.push({ name, uid: String(body.uid), privateKey: pkcs8, report: report as LightNode['report'] })
  }
  return nodes
}

/** With the agents in another process, as in a cluster. */
async function apart(folder: string): Promise<BenchRow[]> {
  await using server = await startDev(folder, { args: ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=1'] })
  const nodes = await joinNodes(server)
  await using agents = new Agents()
  await agents.start(folder, Number(new URL(server.apiUrl).port), nodes)
  await agents.connected(nodes.length)
  return [
    limited(
      'One VM read while 5,000 are deployed, agents in another process, p99',
      'ms',
      await readsBeside(server),
      100,
    ),
  ]
}

/** Throws if a node was marked as lost during the run. */
async function readsBeside(server: DevServer): Promise<number> {
  using send = senderTo(server)
  const watching = new AbortController()
  const lost = await lostNodes(server, watching.signal)
  await send('POST', '/vms', { name: 'read', ...shape })
  const reads = readMeanwhile(() => send('GET', '/vms/read'))
  const many = Array.from({ length: sized(5_000, 20) }, (_, index) => index)
  await eachOf(many, clients, (index) => send('POST', '/vms?wait=false', { name: `m-${index}`, ...shape }))
  await allRunning(server, many.length)
  const times = await reads.stop()
  if (lost() > 0) throw new Error(`${lost()} nodes were marked as lost`)
  watching.abort()
  return percentile(times, 0.99)
}

/** With the agents in the process of the server. */
async function together(folder: string): Promise<BenchRow[]> {
  const args = ['--driver', 'simulated', '--nodes', `amd64=${sized(200, 2)}`]
  await using server = await startDev(folder, { args })
  const measured: Readonly<Record<Phase, number>>[] = []
  for (let round = 0; round < rounds; round++) measured.push(await rates(server, round))
  const figures = (of: Phase): number[] => measured.slice(warmUp).map((round) => round[of])
  const reference = 'VM configurations created through the same server'
  const row = (what: string, of: Phase, target = {}): BenchRow =>
    compared({ what, reference, unit: '/s', ...target }, figures(of), figures('configs'))
  return [
    row(`\`POST\` of VMs while they are placed and started, ${clients} clients`, 'posts'),
    row('2,000 VMs on 200 simulated nodes, first `POST` to all `Running`', 'running', { atLeast: 0.3 }),
    row(`\`DELETE\` of VMs, ${clients} clients`, 'deletes'),
  ]
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await makeFolder()
  try {
    // Raises the rate limit: one caller sends the whole burst here.
    await fs.writeFile(path.join(folder, 'config.json'), '{"limits":{"requestsPerMinute":1000000000}}')
    return await work(folder)
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

export const bench = async (): Promise<BenchRow[]> => [...(await inFolder(together)), ...(await inFolder(apart))]
