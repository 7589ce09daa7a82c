// A real guest through the service against the same QEMU started by a bare script: what deploying costs beside booting.
// Also what an idle agent costs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Architecture } from '../src/api/architecture.ts'
import type { VmSpec } from '../src/drivers/driver.ts'
import { acceleratorFor } from '../src/drivers/qemu/accel.ts'
import { qemuArguments } from '../src/drivers/qemu/arguments.ts'
import { writeMetadata } from '../src/drivers/qemu/network/metadata.ts'
import { exec } from '../src/platform/exec.ts'
import { makeFolder, program, startDev } from '../test/support/processes/dev-server.ts'
import { freePort } from '../test/support/tools/free-port.ts'
import { inTurns, msOf, sized, sshAnswers, usageOf } from './measure.ts'
import { type BenchRow, compared, limited } from './row.ts'
import { architectures, specOf, tinyIn } from './tiny.ts'

const vms = '/api/v1/namespaces/svc-default/vms'
const shape = { cpu: 2, memoryMiB: 512 }

async function deployToSsh(architecture: Architecture): Promise<BenchRow> {
  const data = await makeFolder()
  try {
    const tiny = await tinyIn(path.join(data, 'images'), architecture)
    await using dev = await startDev(data, { args: ['--nodes', `${architecture}=1`] })
    const figures = await inTurns(
      // The first deployment also takes the image in.
      { rounds: sized(9, 1), warmUp: sized(1, 0) },
      async () => {
        const tookMs = await msOf(async () => {
          const asked = { image: `tiny-${architecture}`, name: 'demo', cpu: shape.cpu, memory: shape.memoryMiB / 1_024 }
          const { body } = await dev.call('POST', vms, asked)
          if (typeof body.ssh !== 'number') throw new Error(JSON.stringify(body))
          await sshAnswers(body.ssh)
        })
        await dev.call('DELETE', `${vms}/demo`)
        return tookMs
      },
      async () => {
        const screen = { port: await freePort(), width: 1_920, height: 1_080 }
        const { sshPort, ...vm } = await specOf(tiny, { architecture, ...shape, screen })
        return bare(path.join(data, 'bare'), vm, sshPort)
      },
    )
    await dev.kill('SIGTERM')
    const what = `Deploy of a cached ${architecture} image to SSH answering`
    return compared({ what, reference: 'the same QEMU, started by a bare script', unit: 'ms', atMost: 1.1 }, ...figures)
  } finally {
    await fs.rm(data, { recursive: true, force: true })
  }
}

/** As a script would: an overlay, QEMU, wait for SSH. */
async function bare(folder: string, vm: VmSpec, sshPort: number): Promise<number> {
  await fs.mkdir(folder)
  await writeMetadata(folder, vm)
  const disk = path.join(folder, 'disk.qcow2')
  const [command = '', ...args] = qemuArguments(vm, {
    accelerator: await acceleratorFor(vm.architecture),
    network: 'user',
    runtime: folder,
    diskNode: { driver: 'qcow2', file: { driver: 'file', filename: disk } },
  })
  const startMs = performance.now()
  await exec('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', vm.image.disk, disk])
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  await Promise.race([sshAnswers(sshPort), ended.then(() => Promise.reject(new Error('QEMU ended')))])
  const tookMs = performance.now() - startMs
  child.kill('SIGKILL')
  await ended
  await fs.rm(folder, { recursive: true, force: true })
  return tookMs
}

/** `svc3 agent` as a separate, idle process. */
async function idleAgent(): Promise<BenchRow[]> {
  const data = await makeFolder()
  await using dev = await startDev(path.join(data, 'server'), {
    args: ['--driver', 'simulated', '--nodes', 'amd64=0,arm64=0'],
  })
  const { body } = await dev.call('POST', '/api/v1/namespaces/svc-default/jointokens', {})
  const place = ['--name', 'idle', '--data', path.join(data, 'agent')]
  const args = ['agent', '--api-url', dev.apiUrl, '--join-token-stdin', ...place]
  const agent = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] })
  agent.stdin.end(String(body.token))
  const idleMs = sized(20_000, 500)
  try {
    await sleep(sized(5_000, 1_000))
    const before = await usageOf(agent.pid ?? 0)
    await sleep(idleMs)
    const after = await usageOf(agent.pid ?? 0)
    const percent = (100_000 * (after.cpuSeconds - before.cpuSeconds)) / idleMs
    return [
      limited('An idle agent, of one core', '%', percent, 1),
      limited('An idle agent, resident memory', 'MB', after.megabytes, 120),
    ]
  } finally {
    agent.kill('SIGTERM')
    await dev.kill('SIGTERM')
    await fs.rm(data, { recursive: true, force: true })
  }
}

export async function bench(): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const architecture of architectures) rows.push(await deployToSsh(architecture))
  return [...rows, ...(await idleAgent())]
}
