// Warm VMs: how long a deployment takes that finds one. On simulated nodes from the request to Running; with real guests to SSH
// answering, beside the cold deployment of the same configuration in the same run, and beside SSH answering in that VM once more:
// less than that no deployment can take.
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Architecture } from '../src/api/architecture.ts'
import { greeting } from '../test/support/guests/guest.ts'
import { type DevServer, makeFolder, startDev } from '../test/support/processes/dev-server.ts'
import { inTurns, msOf, sized } from './measure.ts'
import { type BenchRow, compared, limited, median } from './row.ts'
import { percentile } from './soak/samples.ts'
import { architectures, tinyIn } from './tiny.ts'

const namespace = '/api/v1/namespaces/svc-default'
const poolPath = `${namespace}/pools/warm`

async function call(dev: DevServer, method: string, where: string, body?: unknown) {
  const answer = await dev.call(method, namespace + where, body)
  if (answer.status >= 300) throw new Error(`${method} ${where}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function createPool(dev: DevServer, architecture: Architecture, minIdle: number): Promise<void> {
  await call(dev, 'POST', '/vmconfigs', { name: 'small', image: `tiny-${architecture}`, cpu: 1, memory: 0.25 })
  await call(dev, 'POST', '/pools', { name: 'warm', config: 'small', minIdle, maxIdle: minIdle })
}

async function full(dev: DevServer, ready: number): Promise<void> {
  while ((await dev.call('GET', poolPath)).body.ready !== ready) await sleep(50)
}

/** Deploys a VM that takes a warm one, or does not. */
async function deploy(dev: DevServer, isWarm: boolean): Promise<number> {
  const vm = await call(dev, 'POST', '/vms', { name: 'job', vmConfig: 'small', ...(!isWarm && { noWarm: true }) })
  if ((vm.warm === 'warm') !== isWarm) throw new Error(`a VM is ${isWarm ? 'not ' : ''}warm`)
  return Number(vm.ssh)
}

async function simulated(): Promise<BenchRow[]> {
  const folder = await makeFolder()
  try {
    await using dev = await startDev(folder, { args: ['--driver', 'simulated', '--nodes', 'amd64=4'] })
    const slots = sized(8, 1)
    await createPool(dev, 'amd64', slots)
    const times: number[] = []
    for (let round = 0; round < sized(210, 2); round++) {
      await full(dev, slots)
      times.push(await msOf(() => deploy(dev, true)))
      await call(dev, 'DELETE', '/vms/job')
    }
    // The first ones warm up.
    const counted = times.slice(sized(10, 0))
    return [
      limited('Deployment that takes a warm VM to `Running`, simulated, median', 'ms', median(counted), 20),
      limited('Deployment that takes a warm VM to `Running`, simulated, p99', 'ms', percentile(counted, 0.99), 100),
    ]
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

/** One try after the other: the guest of a warm VM answers the first. */
async function sshGreets(port: number): Promise<void> {
  const endMs = performance.now() + 120_000
  while (!(await greeting('127.0.0.1', port, 1_000))?.startsWith('SSH-')) {
    if (performance.now() > endMs) throw new Error(`no SSH at port ${port}`)
    await sleep(10)
  }
}

async function real(architecture: Architecture): Promise<BenchRow[]> {
  const folder = await makeFolder()
  try {
    await tinyIn(path.join(folder, 'images'), architecture)
    await using dev = await startDev(folder, { args: ['--nodes', `${architecture}=1`] })
    await createPool(dev, architecture, 1)
    const againMs: number[] = []
    const toSsh = async (isWarm: boolean): Promise<number> => {
      // What boots for the pool is no part of either.
      await full(dev, 1)
      let port = 0
      const tookMs = await msOf(async () => {
        port = await deploy(dev, isWarm)
        await sshGreets(port)
      })
      if (isWarm) againMs.push(await msOf(() => sshGreets(port)))
      await call(dev, 'DELETE', '/vms/job')
      return tookMs
    }
    const figures = await inTurns(
      { rounds: sized(8, 1), warmUp: sized(1, 0) },
      () => toSsh(true),
      () => toSsh(false),
    )
    // Its VMs outlive the service.
    await call(dev, 'DELETE', '/pools/warm')
    const vms = path.join(folder, 'nodes', `dev-${architecture}-1`, 'vms')
    while ((await fs.readdir(vms)).length > 0) await sleep(50)
    await dev.kill('SIGTERM')
    const what = `Deployment that takes a warm ${architecture} VM to SSH answering`
    const [warm] = figures
    return [
      compared({ what, reference: 'its cold deployment', unit: 'ms', atMost: 0.05 }, ...figures),
      compared({ what, reference: 'SSH answering once more', unit: 'ms' }, warm, againMs.slice(-warm.length)),
      limited(`${what}, median`, 'ms', median(warm), 150),
      limited(`${what}, p95`, 'ms', percentile(warm, 0.95), 400),
    ]
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
}

export async function bench(): Promise<BenchRow[]> {
  const rows = await simulated()
  for (const architecture of architectures) rows.push(...(await real(architecture)))
  return rows
}
