// The way of a deployment through server and agents, without a hypervisor: how long it takes, how many at once, how fast
// many VMs are listed, and what an idle agent costs. References are the limits that issue and README promise.
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import autocannon from 'autocannon'
import { type BenchRow, median, printRows } from './row.ts'

const root = path.resolve(import.meta.dirname, '..')
const vmsPath = '/api/v1/namespaces/svc-default/vms'

interface Dev {
  readonly url: string
  readonly token: string
  readonly child: ChildProcess
  readonly folder: string
  post(body: object, query?: string): Promise<{ name: string }>
  get(path: string): Promise<{ items: { status: string; name: string }[] }>
  stop(): Promise<void>
}

async function startDev(nodes: string): Promise<Dev> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-bench-'))
  const args = ['dev', '--listen', '127.0.0.1:0', '--data', folder, '--driver', 'simulated', '--nodes', nodes]
  const child = spawn(path.join(root, 'bin/svc3'), args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk
      const ready = /^svc3 ready at (\S+)$/m.exec(output)?.[1]
      if (ready) resolve(ready)
    })
    child.on('exit', (code) => reject(new Error(`svc3 dev ended with ${code}`)))
  })
  const { adminToken: token } = JSON.parse(await fs.readFile(path.join(folder, 'connection.json'), 'utf8'))
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const call = async (method: string, target: string, body?: object) => {
    const response = await fetch(url + target, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    if (!response.ok) throw new Error(`${method} ${target}: ${await response.text()}`)
    return response.json() as Promise<never>
  }
  return {
    url,
    token,
    child,
    folder,
    post: (body, query = '') => call('POST', vmsPath + query, body),
    get: (target) => call('GET', target),
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}

const limit = (name: string, ours: number, reference: number, unit: string, better: BenchRow['better']): BenchRow => ({
  name: `${name} (reference: the limit)`,
  ours,
  reference,
  unit,
  ratio: ours / reference,
  target: 1,
  better,
})

async function deployTimes(): Promise<BenchRow> {
  const dev = await startDev('amd64=20')
  try {
    const times: number[] = []
    for (let round = 0; round < 60; round++) {
      const startMs = performance.now()
      await dev.post({ image: 'tiny-amd64', cpu: 1 })
      times.push(performance.now() - startMs)
    }
    return limit('POST to Running, simulated, p50', median(times.slice(10)), 50, 'ms', 'lower')
  } finally {
    await dev.stop()
  }
}

async function manyVms(): Promise<BenchRow[]> {
  const dev = await startDev('amd64=200')
  try {
    const count = 2_000
    const startMs = performance.now()
    const names = Array.from({ length: count }, (_, index) => index)
    const workers = Array.from({ length: 64 }, async () => {
      for (let each = names.pop(); each !== undefined; each = names.pop())
        await dev.post({ image: 'tiny-amd64', cpu: 1, memory: 0.5 }, '?wait=false')
    })
    await Promise.all(workers)
    await allRunning(dev, count)
    const seconds = (performance.now() - startMs) / 1_000
    const list = await autocannon({
      url: `${dev.url}${vmsPath}?limit=1000`,
      connections: 8,
      duration: 3,
      headers: { authorization: `Bearer ${dev.token}` },
    })
    if (list.non2xx > 0) throw new Error(`lists were refused: ${list.non2xx}`)
    return [
      limit('2,000 VMs on 200 simulated nodes, all Running', seconds, 10, 's', 'lower'),
      limit('LIST of 1,000 VMs', list.requests.average, 500, 'requests/s', 'higher'),
    ]
  } finally {
    await dev.stop()
  }
}

/** By the watch, as a client would. */
async function allRunning(dev: Dev, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${dev.token}` }
  const response = await fetch(`${dev.url}${vmsPath}?watch=true`, { headers, signal: AbortSignal.timeout(60_000) })
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

export async function fleetBench(): Promise<BenchRow[]> {
  return [await deployTimes(), ...(await manyVms())]
}

if (import.meta.main) printRows(await fleetBench())
