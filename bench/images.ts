// Saving a VM that changed little of a large disk, against qemu-img convert of the same disk; and what a second node that
// has the parent fetches of it. Real agents, HTTP and content stores; the guest's writes are qemu-io's.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Agent, startAgent } from '../src/agent/agent.ts'
import { packDisk } from '../src/images/pack/chunks.ts'
import { putManifest } from '../src/images/pack/stored-manifests.ts'
import { silentLog } from '../src/platform/log.ts'
import { makeFolder } from '../test/support/processes/dev-server.ts'
import { startService, type TestService } from '../test/support/rigs/service.ts'
import { layeredDriver, writeAsGuest } from '../test/support/stand-ins/layered-driver.ts'
import { startScheduler } from '../test/support/stand-ins/node.ts'
import { msOf, sized } from './measure.ts'
import { type BenchRow, compared, limited } from './row.ts'

const execute = promisify(execFile)
const mebi = 2 ** 20
const here = '/api/v1/namespaces/svc-default'
/** A fifth of the disk is in use. */
const baseMiB = sized(4_096, 8)
const diskBytes = 5 * baseMiB * mebi
const changedMiB = sized(64, 2)
const rounds = sized(3, 1)
/** Of which half is random, and half compresses well. */
const piece = (): Buffer => Buffer.concat([randomBytes(mebi / 2), Buffer.alloc(mebi / 2, `${Math.random()} `)])

async function makeBase({ services }: TestService, folder: string): Promise<void> {
  const file = path.join(folder, 'base.raw')
  const disk = await fs.open(file, 'w')
  for (let at = 0; at < baseMiB; at++) await disk.write(piece(), 0, mebi, at * 5 * mebi)
  await disk.truncate(diskBytes)
  await disk.close()
  const layers = [await packDisk(file, services.content)]
  const size = { formatVersion: 1, architecture: 'amd64', virtualSizeBytes: diskBytes } as const
  const content = await putManifest(services.content, { ...size, boot: { kind: 'firmware' }, layers })
  const at = { owner: 'bench', createdAt: '2026-11-15T09:00:00Z', updatedAt: '2026-11-15T09:00:00Z' }
  const record = { name: 'base', description: '', architecture: 'amd64', sizeBytes: diskBytes, content, ...at } as const
  await services.collections.images.create('', 'base', record)
}

async function startNode(service: TestService, apiUrl: string, folder: string, name: string): Promise<Agent> {
  const { token } = await service.services.nodeKeys.issueJoinToken('svc-default', 3_600)
  const agent = await startAgent({
    apiUrls: [apiUrl],
    folder: path.join(folder, name),
    imageFolder: path.join(folder, name, 'images'),
    name,
    version: '0.0.0-bench',
    driver: layeredDriver(),
    capacity: { cpu: 64 },
    joinToken: async () => token,
    log: silentLog,
  })
  await agent.ready
  return agent
}

export async function bench(): Promise<BenchRow[]> {
  const folder = await makeFolder()
  const service = await startService({ logLevel: 'silent' })
  service.clock.nowMs = Date.now()
  const token = await service.tokenFor({ kind: 'user', name: 'bench@example.com', admin: true })
  const scheduler = startScheduler(service)
  const agents: Agent[] = []
  const times = { ours: [] as number[], reference: [] as number[] }
  let grownMiB = 0
  let fetchedBytes = 0
  try {
    const apiUrl = await service.listen()
    await makeBase(service, folder)
    for (const name of ['one', 'two']) agents.push(await startNode(service, apiUrl, folder, name))
    const deploy = async (name: string, image: string, node: string): Promise<string> => {
      const { body, text } = await service.call('POST', `${here}/vms`, {
        token,
        body: { name, image, node, cpu: 1, memory: 0.1 },
      })
      if (!body.uid) throw new Error(text)
      return path.join(folder, node, 'vms', body.uid)
    }
    for (const node of ['one', 'two']) await deploy(`first-${node}`, 'base', node)

    for (let round = 0; round < rounds; round++) {
      const vm = await deploy(`vm-${round}`, 'base', 'one')
      const writes = Array.from({ length: changedMiB }, (_, at) => ({
        offset: (at * sized(300, 5) + round) * mebi,
        bytes: piece(),
      }))
      await writeAsGuest(vm, writes)
      const active = (await fs.readdir(vm)).find((name) => name.endsWith('.qcow2')) ?? ''
      const converted = path.join(folder, 'converted.qcow2')
      const convert = async (): Promise<void> => {
        await execute('qemu-img', ['convert', '-f', 'qcow2', '-O', 'qcow2', path.join(vm, active), converted])
        // What we answer for is on the disk; so is this.
        await using handle = await fs.open(converted, 'r+')
        await handle.sync()
      }
      times.reference.push(await msOf(convert))
      await fs.rm(converted)

      const beforeBytes = process.memoryUsage().rss
      const saveMs = performance.now()
      await service.call('POST', `${here}/vms/vm-${round}/save`, { token, body: { imageName: `saved-${round}` } })
      for (;;) {
        const { body } = await service.call('GET', `${here}/images/saved-${round}`, { token })
        grownMiB = Math.max(grownMiB, (process.memoryUsage().rss - beforeBytes) / mebi)
        if (body.state === 'Failed') throw new Error(body.errorMessage)
        if (body.state === 'Ready') break
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      times.ours.push(performance.now() - saveMs)
    }

    const { content } = service.services
    const { open } = content
    Object.assign(content, {
      async *open(...args: Parameters<typeof open>) {
        for await (const bytes of open(...args)) {
          fetchedBytes += bytes.length
          yield bytes
        }
      },
    })
    await deploy('second', 'saved-0', 'two')
  } finally {
    for (const agent of agents) await agent.stop()
    await scheduler[Symbol.asyncDispose]()
    await service[Symbol.asyncDispose]()
    await fs.rm(folder, { recursive: true, force: true })
  }
  const what = 'Save of a VM that changed 64 MiB of a 20 GiB disk'
  const reference = '`qemu-img convert` of the disk, and fsync'
  const fetched = { what: 'What a second node fetches that has the parent', reference: 'what was changed', unit: 'MiB' }
  return [
    compared({ what, reference, unit: 'ms', atMost: 0.5 }, times.ours, times.reference),
    limited('Memory of agent and server during it', 'MiB', grownMiB, 300),
    compared({ ...fetched, atMost: 1.2 }, [fetchedBytes / mebi], [changedMiB]),
  ]
}
