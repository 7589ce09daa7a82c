// Ten thousand nodes and a hundred thousand VMs on an etcd of three members: what they cost a server at rest, how quickly it
// answers, and how they come back when it is killed; and how all that grows from a hundred nodes on. The nodes are light
// agents in processes of their own (scale/agents.ts): two cores do not drive as many whole ones.
// SVC3_SCALE=100,1000 measures other sizes, SVC3_SCALE_NODE_ARGS are for the server's Node.
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEtcdAddress } from '../src/store/etcd/address.ts'
import { EtcdCalls } from '../src/store/etcd/calls.ts'
import { EtcdClient } from '../src/store/etcd/client.ts'
import { encodeCreate } from '../src/store/etcd/protocol.ts'
import { encodeRecord, Layout, newOperationId } from '../src/store/etcd/records.ts'
import { type ServerProcess, ServersRig } from '../test/support/processes/servers.ts'
import { freePort } from '../test/support/tools/free-port.ts'
import { eachOf, lostNodes, msOf, probeMeanwhile, readMeanwhile, sized, usageOf } from './measure.ts'
import { nodeRecord, placedVm } from './records.ts'
import { type BenchRow, compared, limited, median } from './row.ts'
import type { Given, LightNode, Said } from './scale/agents.ts'
import { percentile } from './soak/samples.ts'

const vmsOfEach = 10
const sizes = (process.env.SVC3_SCALE ?? sized('100,1000,10000', '3,6')).split(',').map(Number)
const idleMs = sized(20_000, 500)
const deployments = sized(60, 3)
const pages = sized(200, 5)
/** Of one process: a process may have so many files. */
const agentsOfEach = 5_000
const vmsPath = '/namespaces/svc-default/vms'

interface Figures {
  readonly nodes: number
  readonly emptyMegabytes: number
  readonly megabytes: number
  readonly restPercent: number
  readonly pageMs: number
  readonly deployMs: number
  readonly deployCpuMs: number
  readonly firstSeconds: number
  readonly restartSeconds: number
  readonly cutSeconds: number
  /** Of the server, from its start to all nodes connected, for each of them. */
  readonly returnCpuMs: number
  readonly herdReadMs: number
  readonly herdProbeMs: number
}

const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** By node: with its VMs a transaction of etcd, which takes 128 records. */
const nodesAtOnce = 10

/** While no server is there; as servers write them, but many in one transaction: records one by one take a minute. */
async function seed(storeAddress: string, count: number): Promise<LightNode[]> {
  const options = parseEtcdAddress(storeAddress.slice('etcd:'.length), () => undefined)
  const layout = new Layout(options.prefix)
  const client = new EtcdClient({ ...options, timeoutMs: 60_000 })
  const calls = new EtcdCalls(client, layout)
  layout.adopt((await calls.meta(0)).meta)
  const created = (key: string, value: unknown): Buffer => {
    const etcdKey = layout.key(key)
    return encodeCreate(etcdKey, encodeRecord(etcdKey, newOperationId(), JSON.stringify(value)))
  }
  const nodes: LightNode[] = []
  const firsts = Array.from({ length: Math.ceil(count / nodesAtOnce) }, (_, n) => n * nodesAtOnce)
  await eachOf(firsts, 4, async (first) => {
    const creates: Buffer[] = []
    for (let n = first; n < Math.min(count, first + nodesAtOnce); n++) {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519')
      const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
      const record = nodeRecord(n, vmsOfEach + 2, spki)
      const vms = Array.from({ length: vmsOfEach }, (_, nth) => placedVm(n * vmsOfEach + nth, record, nth))
      creates.push(created(`/nodes/${record.name}`, record))
      for (const vm of vms) creates.push(created(`/vms/${vm.namespace}/${vm.name}`, vm))
      const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
      const report = record.report as LightNode['report']
      nodes.push({ name: record.name, uid: record.uid, privateKey: pkcs8, report })
    }
    // Messages of protocol buffers that are joined are one message with all of their parts.
    const { txn } = await calls.txn(Buffer.concat(creates), { isRepeatable: false, tryMs: 30_000 })
    if (!txn.succeeded) throw new Error('the records are there already')
  })
  client.close()
  return nodes
}

export class Agents implements AsyncDisposable {
  readonly #children: ChildProcess[] = []
  readonly #said: Said[] = []

  /** Each process by another address of this machine: a client has some 28,000 ports for one. */
  async start(folder: string, port: number, nodes: readonly LightNode[]): Promise<void> {
    for (let first = 0; first < nodes.length; first += agentsOfEach) {
      const place = this.#children.length
      const given: Given = {
        apiUrl: `http://127.0.0.${place + 1}:${port}`,
        nodes: nodes.slice(first, first + agentsOfEach),
      }
      const file = path.join(folder, `agents-${place}.json`)
      await fs.writeFile(file, JSON.stringify(given))
      const child = spawn(process.execPath, [path.join(import.meta.dirname, 'scale', 'agents.ts'), file], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      createInterface(child.stdout).on('line', (line) => {
        this.#said[place] = JSON.parse(line)
      })
      this.#children.push(child)
    }
  }

  total(field: keyof Said): number {
    return this.#said.reduce((sum, said) => sum + (said?.[field] ?? 0), 0)
  }

  /** All of them, each for the so-manieth time at least. */
  async connected(count: number, opened = count): Promise<void> {
    for (;;) {
      if (this.total('open') === count && this.total('opened') >= opened) return
      await sleep(100)
    }
  }

  /** Of all connections at once, and of nothing else. */
  cut(): void {
    for (const child of this.#children) child.stdin?.write('cut\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      const exited = once(child, 'exit')
      child.stdin?.end('quit\n')
      await exited
    }
  }
}

async function deployTimes(server: ServerProcess): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < deployments; round++)
    times.push(
      await msOf(async () => {
        const body = { image: 'empty', cpu: 1, memory: 0.5 }
        const { status, body: answer } = await server.call('POST', vmsPath, body)
        if (status !== 201) throw new Error(`a deployment was refused: ${JSON.stringify(answer)}`)
      }),
    )
  return times.slice(Math.floor(deployments / 6))
}

/** From page to page, and from the first again. */
async function pageTimes(server: ServerProcess): Promise<number[]> {
  const times: number[] = []
  let next = ''
  for (let round = 0; round < pages; round++) {
    const startMs = performance.now()
    const { status, body } = await server.call(
      'GET',
      `${vmsPath}?limit=500${next && `&continue=${encodeURIComponent(next)}`}`,
    )
    times.push(performance.now() - startMs)
    if (status !== 200) throw new Error(`a page was refused: ${status}`)
    next = body.continue ?? ''
  }
  return times
}

async function notReady(server: ServerProcess): Promise<number> {
  const { body } = await server.call('GET', '/namespaces/svc-default/nodes?limit=1000&fieldSelector=phase!=READY')
  return body.items.length
}

async function measure(count: number): Promise<Figures> {
  await using rig = await ServersRig.start({ members: 3 })
  const port = await freePort()
  const nodeArgs = ['--max-semi-space-size=16', ...(process.env.SVC3_SCALE_NODE_ARGS?.split(' ') ?? [])]
  const start = (): Promise<ServerProcess> => rig.server('one', nodeArgs, { host: '0.0.0.0', port })
  const first = await start()
  const { status } = await first.call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
  if (status !== 202) throw new Error(`no image was made: ${status}`)
  const emptyMegabytes = (await usageOf(first.child.pid ?? 0)).megabytes
  await first.kill('SIGTERM')
  const nodes = await seed(rig.storeAddress, count)
  say(`${count} nodes: seeded`)

  let server: ServerProcess | undefined = await start()
  await using agents = new Agents()
  const firstMs = performance.now()
  await agents.start(rig.folder, port, nodes)
  await agents.connected(count)
  const firstSeconds = (performance.now() - firstMs) / 1_000
  const firstCpu = (await usageOf(server.child.pid ?? 0)).cpuSeconds
  say(
    `${count} nodes: all connected after ${firstSeconds.toFixed(1)} s, and ${firstCpu.toFixed(1)} s of the server's processor`,
  )

  const pid = server.child.pid ?? 0
  await sleep(idleMs / 2)
  const [before, startMs] = [await usageOf(pid), performance.now()]
  await sleep(idleMs)
  const after = await usageOf(pid)
  const restPercent = (100_000 * (after.cpuSeconds - before.cpuSeconds)) / (performance.now() - startMs)
  say(
    `${count} nodes: ${restPercent.toFixed(1)} % of a core, ${after.megabytes.toFixed(0)} MB (empty: ${emptyMegabytes.toFixed(0)})`,
  )

  await pageTimes(server)
  const pageMs = percentile(await pageTimes(server), 0.99)
  say(`${count} nodes: page p99 ${pageMs.toFixed(1)} ms`)
  const idleCpu = (restPercent / 100) * 1
  const [cpuBefore, deployStartMs] = [(await usageOf(pid)).cpuSeconds, performance.now()]
  const deployMs = median(await deployTimes(server))
  const deployedSeconds = (performance.now() - deployStartMs) / 1_000
  const deployCpuMs = (1_000 * ((await usageOf(pid)).cpuSeconds - cpuBefore - idleCpu * deployedSeconds)) / deployments
  say(
    `${count} nodes: POST to Running p50 ${deployMs.toFixed(1)} ms, ${deployCpuMs.toFixed(1)} ms of the server's processor`,
  )

  const ready = agents.total('opened')
  await server.kill(process.env.SVC3_SCALE_NODE_ARGS ? 'SIGTERM' : 'SIGKILL')
  server = undefined
  const restartMs = performance.now()
  const reads = readMeanwhile(() => server?.call('GET', `${vmsPath}/vm-1`))
  server = await start()
  const startedCpu = (await usageOf(server.child.pid ?? 0)).cpuSeconds
  say(
    `${count} nodes: server is back after ${((performance.now() - restartMs) / 1_000).toFixed(1)} s and ${startedCpu.toFixed(1)} s of its processor`,
  )
  const probes = probeMeanwhile(server.apiUrl)
  const watching = new AbortController()
  const lost = await lostNodes(server, watching.signal)
  await agents.connected(count, ready + count)
  const restartSeconds = (performance.now() - restartMs) / 1_000
  const returnCpuMs = (1_000 * ((await usageOf(server.child.pid ?? 0)).cpuSeconds - startedCpu)) / count
  const herdReadMs = percentile(await reads.stop(), 0.99)
  const probed = await probes.stop()
  const herdProbeMs = percentile(probed, 0.99)
  say(
    `${count} nodes: all back after ${restartSeconds.toFixed(1)} s and ${returnCpuMs.toFixed(2)} ms of the server's processor each, reads p99 ${herdReadMs.toFixed(1)} ms and new connections ${herdProbeMs.toFixed(1)} ms (longest ${Math.max(...probed).toFixed(1)} ms) meanwhile`,
  )
  await sleep(idleMs / 2)
  const [opened, cutMs] = [agents.total('opened'), performance.now()]
  agents.cut()
  await agents.connected(count, opened + count)
  const cutSeconds = (performance.now() - cutMs) / 1_000
  say(`${count} nodes: all back ${cutSeconds.toFixed(1)} s after a cut of the network`)
  const marked = lost() + (await notReady(server))
  watching.abort()
  if (marked > 0) throw new Error(`${marked} nodes were marked as lost while they came back`)
  if (process.env.SVC3_SCALE_NODE_ARGS) await server.kill('SIGTERM')
  return {
    nodes: count,
    emptyMegabytes,
    megabytes: after.megabytes,
    restPercent,
    pageMs,
    deployMs,
    deployCpuMs,
    firstSeconds,
    restartSeconds,
    cutSeconds,
    returnCpuMs,
    herdReadMs,
    herdProbeMs,
  }
}

const sizeText = ({ nodes }: Figures): string =>
  `${nodes.toLocaleString('en')} nodes and ${(nodes * vmsOfEach).toLocaleString('en')} VMs`

const returns = (figures: Figures): BenchRow[] => {
  const seconds = figures.nodes > 1_000 ? 180 : 20
  return [
    limited(
      `${sizeText(figures)}: server killed and started to all nodes connected`,
      's',
      figures.restartSeconds,
      seconds,
    ),
    limited(`${sizeText(figures)}: network cut to all nodes connected`, 's', figures.cutSeconds, seconds),
  ]
}

const large = (figures: Figures): BenchRow[] => {
  const what = sizeText(figures)
  return [
    limited(`${what}: memory of the server`, 'MB', figures.megabytes, 2_000),
    limited(`${what}: at rest, of a core`, '%', figures.restPercent, 25),
    limited(`${what}: a page of 500 VMs, p99`, 'ms', figures.pageMs, 50),
    limited(`${what}: \`POST\` to \`Running\`, p50`, 'ms', figures.deployMs, 100),
    limited(`${what}: one VM read during that, p99`, 'ms', figures.herdReadMs, 100),
    limited(`${what}: a new connection to its answer during that, p99`, 'ms', figures.herdProbeMs, 1_000),
  ]
}

const perVmKilobytes = ({ megabytes, emptyMegabytes, nodes }: Figures): number =>
  (1_024 * (megabytes - emptyMegabytes)) / (nodes * vmsOfEach)

/** Of one VM, node or deployment: beside a tenth of the nodes. */
const growth = (small: Figures, big: Figures): BenchRow[] => {
  const [less, more] = [small, big].map(({ nodes }) => `${nodes.toLocaleString('en')} nodes`)
  const row = (what: string, unit: string, of: (figures: Figures) => number, atMost: number): BenchRow =>
    compared({ what: `${what}, ${more}`, reference: less ?? '', unit, atMost }, [of(big)], [of(small)])
  return [
    row('Memory per VM', 'KB', perVmKilobytes, 1.2),
    // The clock of processors counts hundredths of a second: less than one of them counts as one.
    row(
      'At rest per node, of a core',
      '%',
      ({ restPercent, nodes }) => Math.max(restPercent, 1_000 / idleMs) / nodes,
      1.2,
    ),
    row('Server CPU per node that comes back', 'ms', ({ returnCpuMs }) => returnCpuMs, 1.2),
    row('Server CPU per deployment', 'ms', ({ deployCpuMs }) => deployCpuMs, big.nodes / small.nodes),
  ]
}

export async function bench(): Promise<BenchRow[]> {
  const all: Figures[] = []
  for (const size of sizes) all.push(await measure(size))
  const biggest = all.at(-1)
  return [
    ...(biggest ? large(biggest) : []),
    ...all.slice(1).flatMap(returns),
    ...all.slice(1).flatMap((figures, index) => growth(all[index] ?? figures, figures)),
  ]
}
