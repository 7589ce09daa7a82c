// A deployment's path through server and agents, without a hypervisor: how long it takes, how many at once, and how fast
// many VMs are listed.
import fs from 'node:fs/promises'
import autocannon from 'autocannon'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { eachOf, msOf, sized } from './measure.ts'
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
  return limited('`POST` to `Running`, simulated, p50', 'ms', median(times.slice(warmUp)), 50)
}

async function manyVms(server: DevServer): Promise<BenchRow[]> {
  const all = Array.from({ length: sized(2_000, 20) }, (_, index) => index)
  const tookMs = await msOf(async () => {
    await eachOf(all, 64, () => deploy(server, '?wait=false'))
    await allRunning(server, all.length)
  })
  const list = await autocannon({
    url: `${server.apiUrl}${vmsPath}?limit=1000`,
    connections: 8,
    duration: sized(3, 1),
    headers: { authorization: `Bearer ${server.token}` },
  })
  if (list.non2xx > 0) throw new Error(`lists were refused: ${list.non2xx}`)
  const about = { what: '`LIST` of 1,000 VMs', reference: 'the limit', unit: '/s', atLeast: 1 }
  return [
    limited('2,000 VMs on 200 simulated nodes, all `Running`', 's', tookMs / 1_000, 10),
    compared(about, [list.requests.average], [500]),
  ]
}

/** By the watch, as a client would. */
async function allRunning({ apiUrl, token }: DevServer, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${apiUrl}${vmsPath}?watch=true`, { headers, signal: AbortSignal.timeout(60_000) })
  const running = new Set<string>()
  let rest = ''
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk).toString()
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { object } = JSON.parse(line)
      if (object.status === 'Running') running.add(object.name)
    }
    if (running.size >= count) return
  }
}

export const bench = async (): Promise<BenchRow[]> => [
  await withFleet(20, deployTimes),
  ...(await withFleet(sized(200, 2), manyVms)),
]
