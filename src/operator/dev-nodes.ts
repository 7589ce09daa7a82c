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
import { agentSettingsFile, readAgentSettings } from './agent-settings.ts'
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
  /** What copies of images may take of the disk. */
  readonly imageQuotaBytes: number | undefined
  /** The registry that the images are in; without it, where the settings say, or the data folder. */
  readonly images: string | undefined
}

type Plane = Pick<ControlPlane, 'localUrl' | 'nodeKeys' | 'collections' | 'logLevel'>

/** As many cores as the smallest Mac has, so that a VM of the usual size fits on any machine. */
const fewestCores = 8
const mib = 2 ** 20
const joinSeconds = 300

interface Kind {
  /** Of the nodes' names. Nodes of their own: VMs of one driver are nothing to the other. */
  readonly prefix: string
  /** Of the driver. */
  settings(options: Place): Promise<NodesWork['settings']>
  capacity(place: number, count: number): CapacityOptions
}

const kinds: Readonly<Record<DevOptions['driver'], Kind>> = {
  qemu: {
    prefix: 'dev',
    async settings({ dataDir }) {
      const network = await usableNetwork()
      const { macos } = await readAgentSettings(path.join(dataDir, agentSettingsFile), false)
      return { network, macos }
    },
    // They share this machine.
    capacity: (_, count) => ({
      cpu: Math.max(os.availableParallelism(), fewestCores),
      memoryMiB: Math.floor((os.totalmem() * 0.9) / mib / count),
      ip: '127.0.0.1',
    }),
  },
  simulated: {
    prefix: 'sim',
    settings: async ({ simulation }) => ({ simulation }),
    // Each is a Mac mini at an address of its own.
    capacity: (place) => ({
      cpu: 12,
      memoryMiB: 32_768,
      ip: `127.1.${Math.floor(place / 250)}.${(place % 250) + 1}`,
    }),
  },
}

export interface Nodes {
  readonly driver: DevOptions['driver']
  readonly count: number
  stop(): Promise<void>
  /** What to tell whoever stops them about VMs that outlive them. */
  left(): string
}

type Place = Pick<DevOptions, 'dataDir' | 'driver' | 'simulation' | 'imageQuotaBytes'>

/** Returns when every node is connected. */
export async function startNodes(
  plane: Plane,
  options: Place & Pick<DevOptions, 'nodes'>,
  program: string,
): Promise<Nodes> {
  await listBuiltInImages(plane)
  const driver = await usableDriver(options.driver)
  const kind = kinds[driver]
  const names = Object.entries(options.nodes).flatMap(([architecture, count]) =>
    Array.from({ length: count }, (_, index) => ({
      name: `${kind.prefix}-${architecture}-${index + 1}`,
      architecture: architecture as keyof DevOptions['nodes'],
    })),
  )
  if (names.length === 0) return { driver, count: 0, stop: async () => undefined, left: () => '' }
  const nodes = names.map(({ name, architecture }, place) => ({
    apiUrls: [plane.localUrl],
    folder: path.join(options.dataDir, 'nodes', name),
    imageFolder: path.join(options.dataDir, 'images'),
    name,
    version,
    imageQuotaBytes: options.imageQuotaBytes,
    capacity: { architecture, ...kind.capacity(place, names.length) },
  }))
  const settings = await kind.settings(options)
  const thread = await startThread(plane.nodeKeys, { nodes, driver, settings, logLevel: plane.logLevel })
  return {
    driver,
    count: nodes.length,
    stop: thread.stop,
    left: () =>
      driver === 'simulated' ? '' : leftBehind(vmsOn(plane, new Set(names.map(({ name }) => name))), program),
  }
}

/** Those that may have a process: a stopped or failed VM has none. */
const vmsOn = ({ collections }: Plane, nodes: ReadonlySet<string>): string[] =>
  collections.vms.view
    .range()
    .map(({ value }) => value)
    .filter(({ place, observed }) => place && nodes.has(place.node) && !endedPowers.has(observed.power))
    .map(({ name, namespace }) => (namespace === defaultNamespace ? name : `${namespace}/${name}`))

const endedPowers: ReadonlySet<VmObserved['power']> = new Set(['stopped', 'failed'])

/** Without their data nothing finds their processes again. */
export function leftBehind(vms: readonly string[], program: string): string {
  if (vms.length === 0) return ''
  const [count, them] = vms.length === 1 ? ['1 VM keeps', 'it'] : [`${vms.length} VMs keep`, 'them']
  const shown = vms.length > maxShown ? [...vms.slice(0, maxShown), `${vms.length - maxShown} more`] : vms
  return `${count} running: ${shown.join(', ')}. The next start finds ${them}.
To start over, delete ${them} with ${program} vm delete while svc3 runs, before you delete the data.
`
}

/** More would not be read. */
const maxShown = 20

const say = (line: string): void => void process.stdout.write(`svc3: ${line}\n`)

/** Real VMs where possible; otherwise simulated ones, with a clear warning. */
async function usableDriver(wanted: DevOptions['driver']): Promise<DevOptions['driver']> {
  if (wanted !== 'qemu' || (await ensureHostPrograms(say))) return wanted
  say('Until then VMs are SIMULATED: commands work, but nothing runs and SSH does not answer')
  return 'simulated'
}

/** On one's own machine an open network is better than none, with a warning. */
async function usableNetwork(): Promise<NetworkKind> {
  const why = await canSeal()
  if (why === undefined || process.platform !== 'linux') return defaultNetwork
  say(`Guests can reach services on 127.0.0.1 of this machine, because their network cannot be isolated: ${why}`)
  return 'user'
}

/** Returns when its nodes are connected. When the thread ends after that unasked, this process ends with it. */
async function startThread(nodeKeys: Plane['nodeKeys'], workerData: NodesWork): Promise<Pick<Nodes, 'stop'>> {
  const thread = new Worker(findThread('dev-nodes-thread', import.meta.url), {
    name: 'svc3-nodes',
    workerData,
    execArgv: [],
    stderr: true,
  })
  // Node itself would stop to pass it on when nobody reads this process's any more, and keep all of it.
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

/** Linux images that nodes build themselves at the first use: listed from the first second. */
async function listBuiltInImages({ collections }: Plane): Promise<void> {
  const records = builtInImages.flatMap((image) => architectures.map((architecture) => demoImage(image, architecture)))
  for (const record of records) {
    if (collections.images.get('', record.name)) continue
    const at = timestamp(new Date())
    const whole = { ...record, owner: 'svc3', createdAt: at, updatedAt: at }
    await collections.images.create('', record.name, whole).catch((error: unknown) => {
      if (!isFault(error, 'AlreadyExists')) throw error
    })
  }
}
