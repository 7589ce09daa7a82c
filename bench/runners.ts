// What fifty idle runner pools cost the process of a server, beside the same process before it had them. GitHub is a stand-in, whose
// polls wait as long as the real ones.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeFolder } from '../test/support/processes/dev-server.ts'
import { type ServerProcess, startServerProcess } from '../test/support/processes/servers.ts'
import { GitHubStandIn } from '../test/support/stand-ins/github.ts'
import { sized } from './measure.ts'
import { type BenchRow, limited } from './row.ts'

const namespace = '/namespaces/svc-default'
const pools = sized(50, 3)
const watchedMs = sized(60_000, 500)
const ticksPerSecond = 100

async function call(server: ServerProcess, where: string, body: object): Promise<void> {
  const answer = await server.call('POST', namespace + where, body)
  if (answer.status >= 300) throw new Error(`${where}: ${JSON.stringify(answer.body)}`)
}

interface Cost {
  readonly corePercent: number
  readonly megabytes: number
}

async function costOf({ child }: ServerProcess): Promise<Cost> {
  const processorMs = async (): Promise<number> => {
    // Behind the name, which may have spaces: utime and stime are the 12th and 13th.
    const fields = (await fs.readFile(`/proc/${child.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond
  }
  const beforeMs = await processorMs()
  const startMs = performance.now()
  await sleep(watchedMs)
  const corePercent = (100 * ((await processorMs()) - beforeMs)) / (performance.now() - startMs)
  // It collects its garbage for a line, and answers with one.
  const { stdin, stdout } = child
  if (!stdin || !stdout) throw new Error('the server has no standard input')
  stdin.write('\n')
  await once(stdout, 'data')
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await fs.readFile(`/proc/${child.pid}/status`, 'utf8')) ?? []
  return { corePercent, megabytes: Number(kilobytes) / 1_024 }
}

export async function bench(): Promise<BenchRow[]> {
  await using cleanup = new AsyncDisposableStack()
  const dataFolder = await makeFolder()
  cleanup.defer(() => fs.rm(dataFolder, { recursive: true, force: true }))
  const github = cleanup.use(await GitHubStandIn.start({ pollMs: 50_000, lapseMs: 60_000 }))
  const masterKey = randomBytes(32).toString('base64')
  const server = await startServerProcess({ dataFolder, masterKey, nodeArgs: ['--expose-gc'] })
  cleanup.defer(() => server.kill())
  await call(server, '/images', { name: 'empty', size: '1G' })
  await call(server, '/vmconfigs', { name: 'small', image: 'empty', cpu: 1, memory: 0.5 })
  // Started, and quiet.
  await sleep(sized(10_000, 100))
  const before = await costOf(server)
  const credential = { token: 'ghp_standin' }
  for (let index = 0; index < pools; index++)
    await call(server, '/runnerpools', { name: `ci-${index}`, url: github.url, config: 'small', credential })
  while (new Set(github.capacities.map(({ set }) => set)).size < pools) await sleep(50)
  const after = await costOf(server)
  const what = '50 idle runner pools'
  return [
    limited(`${what}, processor`, '% of a core', Math.max(0, after.corePercent - before.corePercent), 5),
    limited(`${what}, memory`, 'MB', Math.max(0, after.megabytes - before.megabytes), 50),
  ]
}
