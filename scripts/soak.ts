// `npm run soak [-- --minutes N]`: an hour of a busy cluster. 200 simulated nodes on two servers and etcd; VMs come and
// go, pages watch, jobs log in, images are uploaded, and one of the servers restarts every five minutes. What the other
// one holds must not grow. Prints the table and draws the chart of docs/benchmarks.md. Ends with 1 when a limit is
// missed.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Given } from '../bench/soak/agents.ts'
import { Load } from '../bench/soak/load.ts'
import { chartOf, isMissed, linesOf, type Soaked, tableOf } from '../bench/soak/report.ts'
import { type Sample, sampleOf } from '../bench/soak/samples.ts'
import { type ServerProcess, ServersRig } from '../test/support/processes/servers.ts'
import { root } from './sources.ts'

interface SoakOptions {
  readonly minutes: number
  /** Shorter in a test that sees that it still works. */
  readonly minuteMs?: number
  readonly nodes: number
  readonly restartMinutes: number
  readonly say: (line: string) => void
}

/** Until the last VMs are deleted, and the server has closed idle connections, which it does after 75 s. */
const restMinutes = 2

export async function soak({ minutes, minuteMs = 60_000, nodes, restartMinutes, say }: SoakOptions): Promise<Soaked> {
  await using rig = await ServersRig.start()
  const stays = await rig.server('stays', ['--expose-gc'])
  let restarts = await rig.server('restarts')
  const agents = await startAgents(rig, [stays, restarts], nodes)
  const load = new Load({ targets: () => [restarts, stays], maxVms: nodes * 2 })
  // It comes back at another port: from now on all nodes are with the one that stays.
  await restarts.kill()
  restarts = await rig.server('restarts')
  await sleep(restMinutes * minuteMs)
  const before = await sampleOf(stays, 0)
  const startMs = performance.now()
  const samples: Sample[] = [before]
  let restarted = 0
  let told = 0
  {
    await using _ = load
    await load.start()
    for (let minute = 1; minute <= minutes; minute++) {
      await sleep(Math.max(0, startMs + minute * minuteMs - performance.now()))
      const sample = await sampleOf(stays, minute)
      samples.push(sample)
      say(`minute ${minute}: ${JSON.stringify(sample)}, ${load.calls.length} calls, ${load.failures.length} failed`)
      for (const failure of load.failures.slice(told)) say(failure)
      told = load.failures.length
      if (minute % restartMinutes !== 0 || minute === minutes) continue
      await restarts.kill(restarted++ % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
      restarts = await rig.server('restarts')
    }
  }
  await sleep(restMinutes * minuteMs)
  const after = await sampleOf(stays, minutes)
  agents.kill()
  const { calls, failures } = load
  return { samples, calls, failures, startMs, minuteMs, rest: [before, after], restarts: restarted, minutes }
}

async function startAgents(rig: ServersRig, servers: readonly ServerProcess[], count: number): Promise<ChildProcess> {
  const program = path.join(root, 'bench/soak/agents.ts')
  const given: Given = {
    apiUrls: servers.map(({ apiUrl }) => apiUrl),
    joinToken: servers[0]?.joinToken ?? '',
    folder: path.join(rig.folder, 'agents'),
    count,
  }
  const child = spawn(process.execPath, [program, JSON.stringify(given)], { stdio: ['pipe', 'pipe', 'inherit'] })
  await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the agents ended with ${code}`))),
  ])
  return child
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } })
  const soaked = await soak({ minutes: Number(values.minutes), nodes: 200, restartMinutes: 5, say: console.error })
  const lines = linesOf(soaked)
  console.log(tableOf(lines))
  await fs.writeFile(path.join(root, 'docs/images/soak.svg'), chartOf(soaked))
  process.exit(lines.some(isMissed) ? 1 : 0)
}
