// A VM that starts before its image has arrived, beside one whose node has it, and the fetch of all of it. Real
// processes of server and nodes, real guests, a real registry; a proxy holds its answers to 50 MB/s and counts them.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Vm } from '../src/api/vms/vms.ts'
import { openContentFolder } from '../src/images/content/store.ts'
import type { Manifest } from '../src/images/format/format.ts'
import { packAttachment } from '../src/images/pack/attachments.ts'
import { packDisk } from '../src/images/pack/chunks.ts'
import { putManifest } from '../src/images/pack/stored-manifests.ts'
import { imageSource } from '../src/oci/artifact/image-target.ts'
import { copy } from '../src/oci/copy.ts'
import { openRegistry } from '../src/oci/registry/registry.ts'
import { type Guest, openGuest } from '../test/support/guests/guest.ts'
import { type DevServer, makeFolder, program, startDev, svc3 } from '../test/support/processes/dev-server.ts'
import { startRegistry } from '../test/support/processes/registry.ts'
import { type SlowLink, startSlowLink } from '../test/support/stand-ins/slow-link.ts'
import { eventually } from '../test/support/tools/eventually.ts'
import { inTurns, msOf, sized, sshAnswers, usageOf } from './measure.ts'
import { type BenchRow, compared, limited } from './row.ts'
import { tinyIn } from './tiny.ts'

const mib = 2 ** 20
const diskMib = sized(4_096, 1_100)
const dataMib = sized(2_048, 16)
const rate = sized(50_000_000, 200_000_000)
const rounds = sized(2, 1)
/** What the guest reads to see how quickly it can, and from where. */
const readMib = sized(512, 4)
const readAt = diskMib - dataMib
const readLine = `dd if=/dev/vda of=/dev/null bs=1M skip=${readAt} count=${readMib} 2>/dev/null`
const readRounds = sized(3, 1)
/** That start one image at once. */
const peers = sized(['one', 'two', 'three'], ['one', 'two'])
const vms = '/api/v1/namespaces/svc-default/vms'

/** A node as a process, with a separate folder. */
interface Node {
  readonly name: string
  readonly pid: number
  stop(): Promise<void>
}

interface World {
  readonly root: string
  /** Of all nodes. */
  readonly agents: ChildProcess[]
  readonly server: DevServer
  readonly link: SlowLink
  readonly image: string
}

async function startNode({ root, server, agents }: World, name: string, ...more: string[]): Promise<Node> {
  const { stdout } = await svc3(['node', 'join-token'], { env: { SVC3_DATA: path.join(root, 'server') } })
  const words = ['agent', '--name', name, '--architecture', 'arm64', '--data', path.join(root, name)]
  const joining = ['--api-url', server.apiUrl, '--join-token-stdin', ...more]
  const child: ChildProcess = spawn(program, [...words, ...joining], { stdio: ['pipe', 'ignore', 'ignore'] })
  agents.push(child)
  child.stdin?.end(stdout.trim())
  await eventually(async () => {
    const { body } = await server.call('GET', '/api/v1/namespaces/svc-default/nodes')
    const found = (body.items as { name: string; phase: string }[]).find((node) => node.name === name)
    if (found?.phase !== 'READY') throw new Error(`node ${name} is ${found?.phase}`)
  }, 60_000)
  return {
    name,
    pid: child.pid ?? 0,
    async stop() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      await fs.rm(path.join(root, name), { recursive: true, force: true })
      await server.call('DELETE', `/api/v1/namespaces/svc-default/nodes/${name}`)
    },
  }
}

/** The tiny guest on a disk with as much data behind it as a real one has. */
async function publish(root: string, host: string): Promise<void> {
  const base = await tinyIn(root, 'arm64')
  const file = await fs.open(base.disk, 'r+')
  await file.truncate(diskMib * mib)
  for (let at = readAt; at < diskMib; at++) await file.write(randomBytes(mib), 0, mib, at * mib)
  await file.close()
  const store = await openContentFolder(path.join(root, 'content'))
  const manifest: Manifest = {
    formatVersion: 1,
    architecture: 'arm64',
    virtualSizeBytes: diskMib * mib,
    boot: {
      kind: 'kernel',
      kernel: await packAttachment(base.boot.kernel, store),
      initrd: await packAttachment(base.boot.initrd, store),
      commandLine: base.boot.commandLine,
    },
    layers: [await packDisk(base.disk, store)],
  }
  const policy = { allowLoopback: true, allowPrivate: false }
  const registry = openRegistry({ server: `http://${host}`, allowInsecure: true, policy })
  const target = { target: registry.repository('bench/image'), reference: 'v1' }
  await copy({ target: imageSource(store), reference: await putManifest(store, manifest) }, target)
  registry.close()
  for (const made of ['content', 'tiny-arm64']) await fs.rm(path.join(root, made), { recursive: true })
}

async function deploy({ server, image }: World, node: string, imageStart: 'whole' | 'lazy'): Promise<Vm> {
  const shape = { image, name: `on-${node}`, cpu: 1, memory: 0.3, node, imageStart }
  const { status, body } = await server.call('POST', vms, shape)
  if (status !== 201) throw new Error(String(body.message))
  return body as never
}

const remove = ({ server }: World, { name }: Vm): Promise<unknown> => server.call('DELETE', `${vms}/${name}`)

async function toSsh(world: World, node: string, imageStart: 'whole' | 'lazy'): Promise<{ vm: Vm; ms: number }> {
  const startMs = performance.now()
  const vm = await deploy(world, node, imageStart)
  await sshAnswers(vm.ssh ?? 0)
  return { vm, ms: performance.now() - startMs }
}

/** Until the image of this VM is on its node. */
async function complete({ server }: World, { name }: Vm): Promise<void> {
  for (;;) {
    const { conditions } = (await server.call('GET', `${vms}/${name}`)).body as unknown as Vm
    if (conditions.some(({ type, status }) => type === 'ImageReady' && status === 'True')) return
    await setTimeout(50)
  }
}

/** MB/s of what the node has. */
async function readSpeed(guest: Guest): Promise<number> {
  await guest.run('echo 3 >/proc/sys/vm/drop_caches')
  return (readMib * mib) / 1_000 / (await msOf(() => guest.run(readLine, 300_000)))
}

/** In the first round, the host's memory does not have it. */
const readSpeeds = (guest: Guest, usual: Guest) =>
  inTurns(
    { rounds: readRounds, warmUp: 1 },
    () => readSpeed(guest),
    () => readSpeed(usual),
  )

/** The peak memory of a process, and its share of a core, while `work` ran. */
async function watched(pid: number, work: Promise<unknown>): Promise<{ megabytes: number; cores: number }> {
  const before = await usageOf(pid)
  const startMs = performance.now()
  let megabytes = before.megabytes
  let isOver = false
  const over = work.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await Promise.race([over, setTimeout(100)])
    megabytes = Math.max(megabytes, (await usageOf(pid)).megabytes)
  }
  const { cpuSeconds } = await usageOf(pid)
  return { megabytes, cores: (1_000 * (cpuSeconds - before.cpuSeconds)) / (performance.now() - startMs) }
}

async function measure(world: World): Promise<BenchRow[]> {
  const { link } = world
  const has = await startNode(world, 'has')
  const wholeMs = performance.now()
  const first = await deploy(world, 'has', 'whole')
  const wholeFetchMs = performance.now() - wholeMs
  const imageBytes = link.bytes
  await remove(world, first)

  const [there, empty, byThen]: [number[], number[], number[]] = [[], [], []]
  for (let round = 1; round < rounds; round++) {
    const known = await toSsh(world, 'has', 'whole')
    there.push(known.ms)
    await remove(world, known.vm)
    const node = await startNode(world, `empty-${round}`)
    const before = link.bytes
    const { vm, ms } = await toSsh(world, node.name, 'lazy')
    byThen.push(link.bytes - before)
    empty.push(ms)
    await remove(world, vm)
    await node.stop()
  }
  // The last one stays until its image has come, and so does what it is measured against.
  const ordinary = await toSsh(world, 'has', 'whole')
  there.push(ordinary.ms)
  using usual = await openGuest(ordinary.vm as never, { user: 'root' })
  const lazy = await startNode(world, 'lazy')
  const before = link.bytes
  const startMs = performance.now()
  const { vm, ms } = await toSsh(world, lazy.name, 'lazy')
  empty.push(ms)
  byThen.push(link.bytes - before)
  const { megabytes, cores } = await watched(lazy.pid, complete(world, vm))
  const completeMs = performance.now() - startMs
  using guest = await openGuest(vm as never, { user: 'root' })
  const after = await readSpeeds(guest, usual)
  await remove(world, vm)
  await lazy.stop()

  const part = await startNode(world, 'part')
  const { vm: partial } = await toSsh(world, part.name, 'lazy')
  using other = await openGuest(partial as never, { user: 'root' })
  await other.run(readLine, 300_000)
  // Measures the path to content that is present, not the contention for the processor.
  link.bytesPerSecond = 1e6
  const during = await readSpeeds(other, usual)
  link.bytesPerSecond = rate
  for (const one of [partial, ordinary.vm]) await remove(world, one)
  for (const one of [part, has]) await one.stop()

  const three = await Promise.all(peers.map((name) => startNode(world, name, '--peer-port', '0')))
  const beforeThree = link.bytes
  const running = await Promise.all(three.map(({ name }) => deploy(world, name, 'lazy')))
  await Promise.all(running.map((one) => complete(world, one)))
  const threeBytes = link.bytes - beforeThree
  await Promise.all(running.map((one) => remove(world, one)))
  for (const node of three) await node.stop()

  const unit = 'ms'
  const image = 'the image'
  const disk = "a VM on a node's copy"
  return [
    compared({ what: 'Deploy on a node that has nothing of a 4 GiB image, half data, to SSH answering', reference: 'on a node that has it', unit, atMost: 2 }, empty, there),
    compared({ what: 'Bytes that have come by then', reference: image, unit: 'MB', atMost: 0.15 }, byThen.map((bytes) => bytes / 1e6), byThen.map(() => imageBytes / 1e6)),
    compared({ what: 'Image complete behind the running VM', reference: 'deploy that fetches all of it first', unit, atMost: 1.2 }, [completeMs], [wholeFetchMs]),
    limited('Memory of the agent until then', 'MB', megabytes, 300),
    limited('The same, processor', 'cores', cores, 1),
    compared({ what: 'Guest reads data that is on the node, image incomplete', reference: disk, unit: 'MB/s', atLeast: 0.9 }, ...during),
    compared({ what: 'The same when the image is complete', reference: disk, unit: 'MB/s', atLeast: 1 }, ...after),
    compared({ what: 'Three nodes at once: bytes from the registry', reference: image, unit: 'MB', atMost: 1.2 }, [threeBytes / 1e6], [imageBytes / 1e6]),
  ] // biome-ignore format: rows
}

export async function bench(): Promise<BenchRow[]> {
  const root = await makeFolder()
  const registry = await startRegistry({ folder: path.join(root, 'registry') })
  const agents: ChildProcess[] = []
  try {
    await publish(root, registry.host)
    const [host = '', port] = registry.host.split(':')
    await using link = await startSlowLink({ host, port: Number(port) }, rate)
    await fs.mkdir(path.join(root, 'server'))
    const settings = { registries: { allowLoopback: true } }
    await fs.writeFile(path.join(root, 'server', 'config.json'), JSON.stringify(settings))
    await using server = await startDev(path.join(root, 'server'), { args: ['--nodes', 'amd64=0,arm64=0'] })
    const through = `127.0.0.1:${link.port}`
    const login = { server: `http://${through}`, username: 'bench', password: 'bench', allowInsecure: true }
    await server.call('POST', '/api/v1/namespaces/svc-default/secrets/registrycredentials/add', login)
    return await measure({ root, agents, server, link, image: `${through}/bench/image:v1` })
  } finally {
    for (const agent of agents) agent.kill('SIGKILL')
    await registry.kill()
    await fs.rm(root, { recursive: true, force: true })
  }
}
