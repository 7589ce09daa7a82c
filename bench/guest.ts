// A real guest through the service against the same QEMU started by a bare script: what deploying costs beside booting.
// Also what an idle agent costs. Both run in turns on one machine.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { greeting, seedTiny } from '../test/support/guests/guest.ts'
import { makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { type BenchRow, median, printRows } from './row.ts'

const vms = '/api/v1/namespaces/svc-default/vms'
const rounds = 9

/** Until the guest's SSH server speaks; tries overlap, because an early one may hang. */
async function sshAnswers(port: number): Promise<void> {
  const untilMs = performance.now() + 60_000
  const heard = Promise.withResolvers<void>()
  const timer = setInterval(() => {
    void greeting('127.0.0.1', port, 3_000).then((text) => text?.startsWith('SSH-') && heard.resolve())
    if (performance.now() > untilMs) heard.reject(new Error(`no SSH at port ${port}`))
  }, 100)
  await heard.promise.finally(() => clearInterval(timer))
}

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** The arguments of the running VM, less what makes it the service's own. */
async function bareArguments(pid: number, port: number): Promise<string[]> {
  const words = (await fs.readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  const kept: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string
    const next = words[at + 1] ?? ''
    if (['-qmp', '-vnc', '-pidfile'].includes(word)) at += 1
    else if (word === '-netdev' && next.startsWith('user,id=net')) {
      kept.push('-netdev', `user,id=net,ipv6=off,hostfwd=tcp:127.0.0.1:${port}-:22`)
      at += 1
    } else kept.push(word)
  }
  return [...kept, '-display', 'none']
}

async function deployToSsh(architecture: 'amd64' | 'arm64'): Promise<BenchRow> {
  const data = await makeFolder()
  await seedTiny(path.join(data, 'images'), [architecture])
  const dev = await startDev(data, { args: ['--nodes', `${architecture}=1`] })
  const times = { ours: [] as number[], bare: [] as number[] }
  try {
    for (let round = 0; round < rounds; round++) {
      const startMs = performance.now()
      const { body } = await dev.call('POST', vms, { image: `tiny-${architecture}`, name: 'demo', cpu: 2, memory: 0.5 })
      await sshAnswers(body.ssh as number)
      times.ours.push(performance.now() - startMs)
      const [uid] = await fs.readdir(path.join(data, `nodes/dev-${architecture}-1/vms`))
      const folder = path.join(data, `nodes/dev-${architecture}-1/vms`, String(uid))
      const pid = Number.parseInt(await fs.readFile(path.join(folder, 'pid'), 'utf8'), 10)
      const port = await freePort()
      // In a folder of its own: the agent's belongs to the agent.
      const own = path.join(data, 'bare')
      const words = (await bareArguments(pid, port)).map((word) => word.replaceAll(folder, own))
      await dev.call('DELETE', `${vms}/demo`)
      times.bare.push(await bare(words, port, own, path.join(data, `images/tiny-${architecture}/disk.raw`)))
    }
  } finally {
    await dev.kill('SIGTERM')
    await fs.rm(data, { recursive: true, force: true })
  }
  const [ours, reference] = [median(times.ours), median(times.bare)]
  return {
    name: `deploy of a cached ${architecture} image to SSH answering (reference: the same QEMU, started by a bare script)`,
    ours,
    reference,
    unit: 'ms',
    // Of medians: two boots of one guest differ by more than what is measured here.
    ratio: ours / reference,
    target: 1.1,
    better: 'lower',
  }
}

/** As a script would: an overlay, QEMU, wait for SSH. */
async function bare(words: readonly string[], port: number, folder: string, image: string): Promise<number> {
  await fs.mkdir(path.join(folder, 'metadata'), { recursive: true })
  const startMs = performance.now()
  const disk = path.join(folder, 'disk.qcow2')
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', image, disk])
  const [program = '', ...args] = words
  const child = spawn(program, args, { cwd: folder, stdio: 'ignore' })
  await sshAnswers(port)
  const tookMs = performance.now() - startMs
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
  await fs.rm(folder, { recursive: true, force: true })
  return tookMs
}

const limit = (name: string, ours: number, reference: number, unit: string): BenchRow => ({
  name: `${name} (reference: the limit)`,
  ours,
  reference,
  unit,
  ratio: ours / reference,
  target: 1,
  better: 'lower',
})

/** `svc3 agent` as a process of its own, with nothing to do. */
async function idleAgent(): Promise<BenchRow[]> {
  const data = await makeFolder()
  const dev = await startDev(path.join(data, 'server'), {
    args: ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=0'],
  })
  const { body } = await dev.call('POST', '/api/v1/namespaces/svc-default/jointokens', {})
  const root = path.resolve(import.meta.dirname, '..')
  const place = ['--name', 'idle', '--data', path.join(data, 'agent')]
  const args = ['agent', '--api-url', dev.apiUrl, '--join-token-stdin', ...place]
  const agent = spawn(path.join(root, 'bin/svc3'), args, { stdio: ['pipe', 'ignore', 'ignore'] })
  agent.stdin.end(String(body.token))
  try {
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    const before = await usage(agent.pid ?? 0)
    await new Promise((resolve) => setTimeout(resolve, 20_000))
    const after = await usage(agent.pid ?? 0)
    const percent = ((after.seconds - before.seconds) / 20) * 100
    return [
      limit('idle agent, of one core', percent, 1, '%'),
      limit('idle agent, resident memory', after.megabytes, 120, 'MB'),
    ]
  } finally {
    agent.kill('SIGTERM')
    await dev.kill('SIGTERM')
    await fs.rm(data, { recursive: true, force: true })
  }
}

async function usage(pid: number): Promise<{ seconds: number; megabytes: number }> {
  const stat = (await fs.readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  const status = await fs.readFile(`/proc/${pid}/status`, 'utf8')
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1])
  return { seconds: (Number(stat[11]) + Number(stat[12])) / 100, megabytes: kilobytes / 1_024 }
}

export async function guestBench(): Promise<BenchRow[]> {
  if (os.platform() !== 'linux') return []
  return [await deployToSsh('amd64'), await deployToSsh('arm64'), ...(await idleAgent())]
}

if (import.meta.main) printRows(await guestBench())
