// Servers on etcd: how long a deployment takes, what a list of many VMs costs beside the same list on SQLite, and what
// a thousand nodes with ten thousand VMs at rest cost a server.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ControlPlane, startControlPlane } from '../src/control-plane/control-plane.ts'
import { SimulatedDriver } from '../src/drivers/simulated.ts'
import { type DevServer, program, startDev } from '../test/support/processes/dev-server.ts'
import { startEtcd } from '../test/support/processes/etcd.ts'
import { type ServerProcess, ServersRig } from '../test/support/processes/servers.ts'
import { ask, tokenFor } from '../test/support/processes/shared-servers.ts'
import { eachOf, inTurns, msOf, sized, usageOf } from './measure.ts'
import { vmRecord } from './records.ts'
import { type BenchRow, compared, limited, median } from './row.ts'

const vmsPath = '/namespaces/svc-default/vms'
const nodeCount = sized(1_000, 3)
const vmsOfEach = 10
const listedVms = sized(10_000, 50)
const idleMs = sized(20_000, 500)

/** Each host has a separate address: ports are assigned by address. */
const agentOptions = (n: number) => ({
  name: `node-${n}`,
  driver: new SimulatedDriver({ architectures: ['amd64'] }),
  capacity: {
    architecture: 'amd64' as const,
    ip: `127.1.${n >> 8}.${n & 255}`,
    cpu: vmsOfEach,
    memoryMiB: 65_536,
  },
})

async function makeImage(server: Pick<ServerProcess, 'call'>): Promise<void> {
  const { status } = await server.call('POST', '/namespaces/svc-default/images', { name: 'empty', size: '1G' })
  if (status !== 202) throw new Error(`no image was made: ${status}`)
}

async function deployTimes(): Promise<BenchRow> {
  await using rig = await ServersRig.start()
  const server = await rig.server('one')
  await makeImage(server)
  // Their VMs outlive them, and keep their ports: the hosts at rest have other addresses.
  for (let n = nodeCount; n < nodeCount + 10; n++) await rig.agent([server.apiUrl], server.joinToken, agentOptions(n))
  const times: number[] = []
  const deploy = async (): Promise<void> => {
    const { status } = await server.call('POST', vmsPath, { image: 'empty', cpu: 1, memory: 0.5 })
    if (status !== 201) throw new Error(`a deployment was refused: ${status}`)
  }
  for (let round = 0; round < sized(60, 3); round++) times.push(await msOf(deploy))
  return limited('`POST` to `Running` through etcd, simulated, p50', 'ms', median(times.slice(sized(10, 1))), 100)
}

/** All pages, after a change: nothing of the answer is at hand. */
async function timeOfList(plane: ControlPlane, token: string, round: number): Promise<number> {
  const { key = '' } = plane.collections.vms.get('svc-default', `vm-${round}`) ?? {}
  await plane.collections.vms.change(key, (vm) => vm && { ...vm, labels: { round: String(round) } })
  const startMs = performance.now()
  let count = 0
  for (let next = ''; ; ) {
    const url = `${plane.localUrl}/api/v1${vmsPath}?limit=1000${next && `&continue=${encodeURIComponent(next)}`}`
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
    const page = (await response.json()) as { items: unknown[]; continue?: string }
    count += page.items.length
    if (page.continue === undefined) break
    next = page.continue
  }
  if (count !== listedVms) throw new Error(`the list had ${count} VMs`)
  return performance.now() - startMs
}

async function lists(): Promise<BenchRow> {
  await using etcd = await startEtcd()
  await using cleanup = new AsyncDisposableStack()
  const masterKey = randomBytes(32).toString('base64')
  const start = async (storeAddress?: string) => {
    const dataFolder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bench-'))
    cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
    await fs.writeFile(path.join(dataFolder, 'config.json'), JSON.stringify({ logLevel: 'silent' }))
    const plane = await startControlPlane({
      dataFolder,
      storeAddress,
      host: '127.0.0.1',
      port: 0,
      environment: { SVC3_MASTER_KEY: masterKey },
      plainHttp: true,
    })
    cleanup.defer(() => plane.stop())
    const all = Array.from({ length: listedVms }, (_, index) => vmRecord(index))
    await eachOf(all, 64, async (record) => {
      await plane.collections.vms.create(record.namespace, record.name, record)
    })
    const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true })
    return (round: number) => timeOfList(plane, token, round)
  }
  const figures = await inTurns(
    { rounds: sized(15, 1), warmUp: sized(3, 0) },
    await start(`etcd://${new URL(etcd.urls[0] ?? '').host}/bench`),
    await start(),
  )
  const what = '`LIST` of 10,000 VMs on etcd'
  return compared({ what, reference: 'the same on SQLite', unit: 'ms', atMost: 1.5 }, ...figures)
}

/** The installed program. */
async function startProgram(
  rig: ServersRig,
): Promise<Pick<ServerProcess, 'call' | 'apiUrl' | 'joinToken'> & DevServer> {
  const { storeAddress, masterKey } = rig
  const folder = path.join(rig.folder, 'program')
  await fs.mkdir(folder)
  await fs.writeFile(path.join(folder, 'config.json'), JSON.stringify({ logLevel: 'warn' }))
  const args = ['--plain-http', '--store', storeAddress]
  const server = await startDev(folder, {
    command: [program, 'server'],
    args,
    env: { SVC3_MASTER_KEY: masterKey },
  })
  const token = await tokenFor(rig)
  const call: ServerProcess['call'] = async (method, where, body) => {
    const asking = ask({ localUrl: server.apiUrl }, method, where, { token, ...(body && { body }) })
    const answer = await asking.catch((cause: unknown) => {
      throw new Error(`${method} ${where} was not answered`, { cause })
    })
    return { status: answer.status, body: await answer.json() }
  }
  const { body } = await call('POST', '/namespaces/svc-default/jointokens', { reusable: true })
  return { ...server, call, joinToken: body.token, token }
}

async function atRest(): Promise<BenchRow[]> {
  await using rig = await ServersRig.start()
  await using server = await startProgram(rig)
  await makeImage(server)
  const nodes = Array.from({ length: nodeCount }, (_, n) => n)
  await eachOf(nodes, 32, async (n) => {
    const agent = await rig.agent([server.apiUrl], server.joinToken, agentOptions(n))
    await agent.ready
  })
  const vms = Array.from({ length: nodeCount * vmsOfEach }, (_, n) => `vm-${n}`)
  await eachOf(vms, 64, async (name) => {
    const body = { image: 'empty', name, cpu: 1, memory: 0.5 }
    const { status } = await server.call('POST', `${vmsPath}?wait=false`, body)
    if (status !== 202) throw new Error(`a deployment was refused: ${status}`)
  })
  for (;;) {
    const { body } = await server.call('GET', `${vmsPath}?limit=1000&fieldSelector=status!=Running`)
    if (body.items?.length === 0) break
    await sleep(1_000)
  }
  const { pid } = server
  await sleep(idleMs / 2)
  const [before, startMs] = [await usageOf(pid), performance.now()]
  await sleep(idleMs)
  const after = await usageOf(pid)
  const percent = (100_000 * (after.cpuSeconds - before.cpuSeconds)) / (performance.now() - startMs)
  return [
    limited('1,000 nodes and 10,000 VMs at rest on etcd: memory of the server', 'MB', after.megabytes, 400),
    limited('The same, of a core', '%', percent, 10),
  ]
}

export const bench = async (): Promise<BenchRow[]> => [await deployTimes(), await lists(), ...(await atRest())]
