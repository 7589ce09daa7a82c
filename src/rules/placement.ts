// Where a VM goes: every node is asked whether it can take it, and of those that can the best one is chosen. Pure: the
// scheduler brings what nodes have left, and writes what comes out.
import type { Architecture } from '../api/architecture.ts'
import type { VmShape } from '../api/vms/vm-shape.ts'
import { freePort, type ReservedPort } from './ports.ts'
import { automaticMemoryMiB } from './sizes.ts'

export interface Candidate {
  readonly name: string
  readonly architecture: Architecture
  /** Why it can take nothing at all: not connected, cordoned, ill. */
  readonly unfit?: string | undefined
  readonly tags: readonly string[]
  readonly images: readonly string[]
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly maxVms?: number | undefined
  readonly maxMacosVms?: number | undefined
  /** Why it runs no guests with macOS. */
  readonly noMacos?: string | undefined
  readonly freeCpu: number
  readonly freeMemoryMiB: number
  readonly freeGpus: number
  readonly vms: number
  /** Of these, how many hold macOS, or may hold it. */
  readonly macosVms: number
  /** By the address of the node, which several nodes may share. */
  isPortTaken(port: number): boolean
}

/** What counts of a VM when a node is chosen. */
export interface Demand
  extends Pick<
    VmShape,
    | 'architecture'
    | 'image'
    | 'cpu'
    | 'memoryMiB'
    | 'gpuPassthrough'
    | 'node'
    | 'tag'
    | 'tagRequired'
    | 'scheduler'
    | 'vncConsole'
  > {
  // biome-ignore format: a list to read
  /** Which guest the image holds, where somebody said so. */
  readonly os?: string | undefined
  readonly reservedPorts: readonly ReservedPort[]
}

export interface Allocation {
  readonly os?: string
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  readonly ssh: number
  readonly vnc?: number
  readonly screenshare: number
}

export type Placement =
  | { readonly ok: true; readonly node: string; readonly allocation: Allocation }
  | { readonly ok: false; readonly reasons: readonly { readonly node: string; readonly reason: string }[] }

const memoryFor = (node: Candidate, demand: Demand): number =>
  demand.memoryMiB === 0 ? automaticMemoryMiB(demand.cpu, node) : demand.memoryMiB

/** What nobody knows of counts as macOS where so many of them are allowed: one too many does not start. */
export const mayBeMacos = (os: string | undefined): boolean => os !== 'linux' && os !== 'other'

type Obstacle = (node: Candidate, demand: Demand) => string | false | undefined

/** Each says why a node cannot take a VM, the plainest reasons first. */
const obstacles: readonly Obstacle[] = [
  (node, { node: asked }) => asked !== undefined && asked !== node.name && `is not the node that was asked for`,
  (node, { architecture }) =>
    node.architecture !== architecture && `is ${node.architecture}, and the image is ${architecture}`,
  (node, { os }) => os === 'macos' && node.noMacos && `does not run macOS guests: ${node.noMacos}`,
  (node) => node.unfit,
  (node, { tag, tagRequired }) =>
    tagRequired && tag !== undefined && !node.tags.includes(tag) && `does not have the tag "${tag}"`,
  (node) => node.maxVms !== undefined && node.vms >= node.maxVms && `runs ${node.vms} VMs, which is its limit`,
  ({ macosVms, maxMacosVms }, { os }) =>
    maxMacosVms !== undefined &&
    mayBeMacos(os) &&
    macosVms >= maxMacosVms &&
    (maxMacosVms === 0
      ? 'may run no VM with macOS now: others on its host are as many as Apple allows'
      : `runs ${macosVms} VMs with macOS, which is its limit: Apple allows no more on a host`),
  (node, { cpu }) => cpu > node.freeCpu && `has ${node.freeCpu} of ${node.cpu} cores free, and ${cpu} are asked for`,
  (node, demand) =>
    memoryFor(node, demand) > node.freeMemoryMiB &&
    `has ${node.freeMemoryMiB} of ${node.memoryMiB} MiB of memory free, and ${memoryFor(node, demand)} are asked for`,
  (node, { gpuPassthrough }) => gpuPassthrough && node.freeGpus < 1 && `has no free GPU`,
  (node, { reservedPorts }) => {
    const taken = reservedPorts.find(({ nodePort }) => node.isPortTaken(nodePort))
    return taken && `does not have port ${taken.nodePort} free`
  },
]

function obstacleOf(node: Candidate, demand: Demand): string | undefined {
  for (const find of obstacles) {
    const reason = find(node, demand)
    if (reason) return reason
  }
  return undefined
}

/** Smaller is better, compared from the left: the tag that is preferred, the image that is there, then room. */
function rankOf(node: Candidate, { tag, image, scheduler, cpu }: Demand): readonly number[] {
  const left = (node.freeCpu - cpu) / node.cpu
  return [
    tag !== undefined && !node.tags.includes(tag) ? 1 : 0,
    node.images.includes(image) ? 0 : 1,
    scheduler === 'most-allocated' ? left : -left,
    scheduler === 'most-allocated' ? -node.vms : node.vms,
  ]
}

function isBetter(a: readonly number[], b: readonly number[]): boolean {
  for (const [index, value] of a.entries()) {
    const other = b[index] as number
    if (value !== other) return value < other
  }
  return false
}

export function place(demand: Demand, nodes: readonly Candidate[]): Placement {
  const reasons: { node: string; reason: string }[] = []
  let best: { node: Candidate; rank: readonly number[]; allocation: Allocation } | undefined
  for (const node of nodes) {
    const reason = obstacleOf(node, demand)
    if (reason) {
      // Where one node was asked for, the others have nothing to say.
      if (demand.node === undefined || demand.node === node.name) reasons.push({ node: node.name, reason })
      continue
    }
    const rank = rankOf(node, demand)
    if (best && !isBetter(rank, best.rank)) continue
    const allocation = allocate(node, demand)
    if (allocation) best = { node, rank, allocation }
    else reasons.push({ node: node.name, reason: 'has no free port left' })
  }
  return best ? { ok: true, node: best.node.name, allocation: best.allocation } : { ok: false, reasons }
}

/** Ports that were reserved are kept free for the same VM. */
export function allocatePorts(
  { vncConsole, reservedPorts }: Pick<Demand, 'vncConsole' | 'reservedPorts'>,
  isPortTaken: (port: number) => boolean,
): Pick<Allocation, 'ssh' | 'vnc' | 'screenshare'> | undefined {
  const own = new Set(reservedPorts.map(({ nodePort }) => nodePort))
  const isTaken = (port: number): boolean => own.has(port) || isPortTaken(port)
  const ssh = freePort('ssh', isTaken)
  if (ssh === undefined) return undefined
  own.add(ssh)
  const screenshare = freePort('screenshare', isTaken)
  if (screenshare === undefined) return undefined
  own.add(screenshare)
  const vnc = vncConsole ? freePort('vnc', isTaken) : undefined
  if (vncConsole && vnc === undefined) return undefined
  return { ssh, screenshare, ...(vnc !== undefined && { vnc }) }
}

function allocate(node: Candidate, demand: Demand): Allocation | undefined {
  const ports = allocatePorts(demand, (port) => node.isPortTaken(port))
  if (!ports) return undefined
  const { os, cpu, gpuPassthrough } = demand
  return {
    ...(os !== undefined && { os }),
    cpu,
    memoryMiB: memoryFor(node, demand),
    gpus: gpuPassthrough ? 1 : 0,
    ...ports,
  }
}

/** What a record of a VM says about where it may go. */
interface Asked extends Pick<Demand, 'os' | 'reservedPorts'> {
  readonly shape: Omit<Demand, 'os' | 'reservedPorts'>
  /** By what its tag stands for: nodes may have what it stood for earlier. */
  readonly imageReference?: string | undefined
}

export const demandOf = ({ shape, reservedPorts, imageReference, os }: Asked): Demand => ({
  ...shape,
  image: imageReference ?? shape.image,
  os,
  reservedPorts,
})

const shownReasons = 10

/** Why it goes nowhere, in a sentence. */
export function nowhere(found: Placement | undefined, { node }: Pick<Demand, 'node'>, namespace: string): string {
  const reasons = found === undefined || found.ok ? [] : found.reasons
  if (reasons.length === 0)
    return node === undefined
      ? `there is no node in namespace "${namespace}"`
      : `there is no node "${node}" in namespace "${namespace}"`
  const shown = reasons.slice(0, shownReasons).map((each) => `node "${each.node}" ${each.reason}`)
  return reasons.length > shownReasons
    ? `${shown.join('; ')}; and ${reasons.length - shownReasons} more`
    : shown.join('; ')
}

/** What each node has to say about a VM. */
export const verdictsOn = (
  demand: Demand,
  nodes: readonly Candidate[],
): { readonly name: string; readonly fits: boolean; readonly reason: string }[] =>
  nodes.map((node) => {
    const found = place(demand, [node])
    const { name, freeCpu, cpu, freeMemoryMiB, memoryMiB } = node
    if (found.ok)
      return {
        name,
        fits: true,
        reason: `has ${freeCpu} of ${cpu} cores and ${freeMemoryMiB} of ${memoryMiB} MiB of memory free`,
      }
    return { name, fits: false, reason: found.reasons[0]?.reason ?? 'is not the node that was asked for' }
  })
