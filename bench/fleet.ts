// A deployment's path through server and agents, without a hypervisor: how long it takes, and how fast many VMs are
// listed. How many at once: burst.ts.
import fs from 'node:fs/promises'
import autocannon from 'autocannon'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { allRunning, eachOf, msOf, sized } from './measure.ts'
import { type BenchRow, compared, limited, median } from './row.ts'

const vmsPath = '/api/v1/namespaces/svc-default/vms'

async function withFleet<T>(nodes: number, work: (server: DevServer) => Promise<T>): Promise<T> {
  const folder = await makeFolder()
  try {
    await using server = await startDev(folder, { args: ['--driver', 'simulated', '--nodes', `amd64=${nodes}`] })
    return await work(server)
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

async function deploy(server: DevServer, query = ''): Promise<void> {
  const { status, body } = await server.call('POST', vmsPath + query, { image: 'tiny-amd64', cpu: 1, memory: 0.5 })
  if (status >= 300) throw new Error(`a deployment was refused: ${JSON.stringify(body)}`)
}

async function deployTimes(server: DevServer): Promise<BenchRow> {
  const times: number[] = []
  const warmUp = sized(10, 1)
  for (let round = 0; round < sized(60, 3); round++) times.push(await msOf(() => deploy(server)))
  return limited('`POST` to `Running`, simulated, p50', 'ms', median(times.slice(warmUp)), 20)
}

async function listing(server: DevServer): Promise<BenchRow> {
  const all = Array.from({ length: sized(1_000, 20) }, (_, index) => index)
  await eachOf(all, 64, () => deploy(server, '?wait=false'))
  await allRunning(server, all.length)
  const list = await autocannon({
    url: `${server.apiUrl}${vmsPath}?limit=1000`,
    connections: 8,
    duration: sized(3, 0.3),
    ...sized({}, { sampleInt: 100 }),
    headers: { authorization: `Bearer ${server.token}` },
  })
  if (list.non2xx > 0) throw new Error(`lists were refused: ${list.non2xx}`)
  const about = { what: '`LIST` of 1,000 VMs', reference: 'the limit', unit: '/s', atLeast: 1 }
  return compared(about, [list.requests.average], [500])
}

export const bench = async (): Promise<BenchRow[]> => [
  await withFleet(20, deployTimes),
  await withFleet(sized(200, 2), listing),
]
