// The nodes of `svc3 dev`: agents in a thread of this process, which connect to the server like any agent.
import { once } from 'node:events'
import os from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { CapacityOptions } from '../agent/host/capacity.ts'
import { type Architecture, architectures } from '../api/architecture.ts'
import { builtInImages } from '../api/images/built-in-images.ts'
import type { ControlPlane } from '../control-plane/control-plane.ts'
import { version } from '../control-plane/version.ts'
import { defaultNetwork, type NetworkKind } from '../drivers/qemu/network/network.ts'
import { canSeal } from '../drivers/qemu/network/seal.ts'
import { timestamp } from '../platform/clock.ts'
import { findThread } from '../platform/threads.ts'
import { defaultNamespace } from '../rules/names.ts'
import { demoImage } from '../store/records/demo-image.ts'
import type { VmObserved } from '../store/records/fleet-records.ts'
import { isFault } from '../store/store.ts'
import { readAgentSettings } from './agent-settings.ts'
import type { FromNodes, NodesWork, ToNodes } from './dev-nodes-thread.ts'
import { ensureHostPrograms } from './host-programs.ts'
import type { ListenAddress } from './options.ts'
import type { Simulation } from './simulate.ts'

export interface DevOptions {
  readonly listen: ListenAddress
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
  readonly driver: 'qemu' | 'simulated'
  /** How many nodes of each architecture. */
  readonly nodes: Readonly<Record<Architecture, number>>
  readonly simulation: Simulation
  readonly imageQuotaBytes: number | undefined
  /** The registry of images. Default: as configured, or the data folder. */
  readonly images: string | undefined
}

type Plane = Pick<ControlPlane, 'localUrl' | 'nodeKeys' | 'collections' | 'logLevel'>

/** A node reports at least the cores of the smallest Mac, so that a VM of the default size fits on any machine. */
const minCores = 8
const mib = 2 ** 20
const joinSeconds = 300

interface NodeKind {
  /** Begins the names of nodes. Each driver has separate nodes, because it cannot use the VMs of another. */
  readonly prefix: string
  settings(options: NodesOptions): Promise<NodesWork['settings']>
  capacity(index: number, count: number): CapacityOptions
}

const kinds: Readonly<Record<DevOptions['driver'], NodeKind>> = {
  qemu: {
    prefix: 'dev',
    async settings({ dataDir }) {
      const network = await usableNetwork()
      const { macos } = await readAgentSettings({ dataDir })
      return { network, macos }
    },
    // The nodes share this machine.
    capacity: (_, count) => ({
      cpu: Math.max(os.availableParallelism(), minCores),
      memoryMiB: Math.floor((os.totalmem() * 0.9) / mib / count),
      ip: '127.0.0.1',
    }),
  },
  simulated: {
    prefix: 'sim',
    settings: async ({ simulation }) => ({ simulation }),
    // Each node is like a Mac mini, with a separate address.
    capacity: (index) => ({
      cpu: 12,
      memoryMiB: 32_768,
      ip: `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`,
    }),
  },
}

interface RunningNodes {
  stop(): Promise<void>
  /** Says which VMs keep running after the nodes have stopped. */
  left(): string
}

type NodesOptions = Pick<DevOptions, 'dataDir' | 'driver' | 'simulation' | 'imageQuotaBytes'>

/** Returns when every node is connected. */
export async function startNodes(
  plane: Plane,
  options: NodesOptions & Pick<DevOptions, 'nodes'>,
  program: string,
): Promise<RunningNodes> {
  await listBuiltInImages(plane)
  const driver = await usableDriver(options.driver)
  const kind = kinds[driver]
  const names = Object.entries(options.nodes).flatMap(([architecture, count]) =>
    Array.from({ length: count }, (_, index) => ({
      name: `${kind.prefix}-${architecture}-${index + 1}`,
      architecture: architecture as keyof DevOptions['nodes'],
    })),
  )
  if (names.length === 0) return { stop: async () => undefined, left: () => '' }
  const nodes = names.map(({ name, architecture }, index) => ({
    apiUrls: [plane.localUrl],
    folder: path.join(options.dataDir, 'nodes', name),
    imageFolder: path.join(options.dataDir, 'images'),
    name,
    version,
    imageQuotaBytes: options.imageQuotaBytes,
    capacity: { architecture, ...kind.capacity(index, names.length) },
  }))
  const settings = await kind.settings(options)
  const thread = await startThread(plane.nodeKeys, { nodes, driver, settings, logLevel: plane.logLevel })
  return {
    stop: thread.stop,
    left: () =>
      driver === 'simulated' ? '' : leftBehind(vmsOn(plane, new Set(names.map(({ name }) => name))), program),
  }
}

/** VMs that may have a process: stopped and failed ones have none. */
const vmsOn = ({ collections }: Plane, nodes: ReadonlySet<string>): string[] =>
  collections.vms.view
    .range()
    .map(({ value }) => value)
    .filter(({ place, observed }) => place && nodes.has(place.node) && !endedPowers.has(observed.power))
    .map(({ name, namespace }) => (namespace === defaultNamespace ? name : `${namespace}/${name}`))

const endedPowers: ReadonlySet<VmObserved['power']> = new Set(['stopped', 'failed'])

/** Returns a warning about VMs that keep running. Without the data, their processes are not found again. */
export function leftBehind(vms: readonly string[], program: string): string {
  if (vms.length === 0) return ''
  const [count, them] = vms.length === 1 ? ['1 VM keeps', 'it'] : [`${vms.length} VMs keep`, 'them']
  const shown = vms.length > maxShown ? [...vms.slice(0, maxShown), `${vms.length - maxShown} more`] : vms
  return `${count} running: ${shown.join(', ')}. The next start finds ${them}.
To start over, delete ${them} with ${program} vm delete while svc3 runs, before you delete the data.
`
}

const maxShown = 20

const say = (line: string): void => void process.stdout.write(`svc3: ${line}\n`)

/** Falls back to simulated VMs, with a warning. */
async function usableDriver(wanted: DevOptions['driver']): Promise<DevOptions['driver']> {
  if (wanted !== 'qemu' || (await ensureHostPrograms(say))) return wanted
  say('Until then VMs are SIMULATED: commands work, but nothing runs and SSH does not answer')
  return 'simulated'
}

/** Falls back to a network that is not isolated, with a warning: on a developer's machine it is better than none. */
async function usableNetwork(): Promise<NetworkKind> {
  const why = await canSeal()
  if (why === undefined || process.platform !== 'linux') return defaultNetwork
  say(`Guests can reach services on 127.0.0.1 of this machine, because their network cannot be isolated: ${why}`)
  return 'user'
}

/** Returns when all nodes are connected. If the thread fails later, this process ends, too. */
async function startThread(nodeKeys: Plane['nodeKeys'], workerData: NodesWork): Promise<Pick<RunningNodes, 'stop'>> {
  const thread = new Worker(findThread('dev-nodes-thread', import.meta.url), {
    name: 'svc3-nodes',
    workerData,
    execArgv: [],
    stderr: true,
  })
  // If Node passed the output on, it would buffer all of it once the reader of this process has closed the pipe.
  thread.stderr.on('data', (text) => process.stderr.write(text))
  const tell = (message: ToNodes): void => thread.postMessage(message)
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>()
  const handlers: Readonly<Record<FromNodes, () => unknown>> = {
    ready: resolve,
    token: () =>
      nodeKeys.issueJoinToken(defaultNamespace, joinSeconds).then(
        ({ token }) => tell({ token }),
        (error: Error) => tell({ problem: error.message }),
      ),
  }
  const ended = (code: number): void =>
    reject(new Error(`The nodes ended with code ${code} before they were connected`))
  thread
    .on('message', (message: FromNodes) => handlers[message]())
    .on('error', reject)
    .on('exit', ended)
  await ready
  thread
    .off('error', reject)
    .off('exit', ended)
    .on('exit', (code) => code !== 0 && process.exit(code))
  return {
    stop: async () => {
      tell('stop')
      await once(thread, 'exit')
    },
  }
}

/** Creates the missing records of the Linux images that nodes build at first use. */
async function listBuiltInImages({ collections }: Plane): Promise<void> {
  const records = builtInImages.flatMap((image) => architectures.map((architecture) => demoImage(image, architecture)))
  for (const record of records) {
    if (collections.images.get('', record.name)) continue
    const at = timestamp(new Date())
    const image = { ...record, owner: 'svc3', createdAt: at, updatedAt: at }
    await collections.images.create('', record.name, image).catch((error: unknown) => {
      if (!isFault(error, 'AlreadyExists')) throw error
    })
  }
}
