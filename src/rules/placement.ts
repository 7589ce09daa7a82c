// Chooses the node of a VM: the best of those that can take it. The scheduler provides what is free on nodes and writes
// the result. Texts are in placement-reasons.ts.
import type { Architecture } from '../api/architecture.ts'
import type { NodeReport } from '../api/nodes/node-report.ts'
import type { VmShape } from '../api/vms/vm-shape.ts'
import { freePort, type PortMapping } from './ports.ts'
import { automaticMemoryMiB } from './sizes.ts'

/** Why a node takes no VMs at all for now. */
export type Unfit =
  | { readonly cause: 'disconnected' }
  | { readonly cause: 'cordoned' }
  | { readonly cause: 'broken'; readonly problem: string }
  /** Reserved for a VM that has waited too long. */
  | { readonly cause: 'reserved'; readonly vm: string }

/** Why a node cannot take a VM, with the numbers. */
export type Obstacle =
  | Unfit
  | { readonly cause: 'architecture'; readonly has: Architecture; readonly requested: Architecture }
  | { readonly cause: 'macos'; readonly problem: string }
  | { readonly cause: 'tag'; readonly tag: string }
  | { readonly cause: 'vms'; readonly limit: number }
  | { readonly cause: 'macosVms'; readonly limit: number; readonly problem?: string }
  | Shortage<'cpu'>
  | Shortage<'memory'>
  | { readonly cause: 'gpu'; readonly total: number }
  | { readonly cause: 'port'; readonly port: number }
  | { readonly cause: 'ports' }

/** A shortage of cores, or of MiB of memory. */
export interface Shortage<C extends 'cpu' | 'memory' = 'cpu' | 'memory'> {
  readonly cause: C
  readonly free: number
  readonly total: number
  readonly requested: number
}

export interface NodeReason {
  readonly node: string
  readonly obstacle: Obstacle
}

export interface Never extends NodeReason {
  readonly capacity: Capacity
}

/** What a node has in total. */
export interface Capacity {
  readonly name: string
  /** Whether the agent has reported the values below. */
  readonly isKnown: boolean
  readonly architecture: Architecture
  readonly tags: readonly string[]
  readonly cpu: number
  readonly memoryMiB: number
  readonly gpus: number
  /** Why the node cannot run macOS guests. */
  readonly noMacos?: string | undefined
  /** Present where macOS VMs are counted; 0 as long as `noMacos` has a problem of the host. */
  readonly maxMacosVms?: number | undefined
}

export interface Candidate extends Capacity {
  readonly unfit?: Unfit | undefined
  readonly images: readonly string[]
  readonly maxVms?: number | undefined
  readonly freeCpu: number
  readonly freeMemoryMiB: number
  readonly freeGpus: number
  readonly vms: number
  /** How many of the VMs run macOS, or may. */
  readonly macosVms: number
  /** Ports are counted per address, which several nodes may share. */
  isPortTaken(port: number): boolean
}

/** What a VM needs of a node. */
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
  /** The guest system of the image, if known. */
  readonly os?: string | undefined
  readonly reservedPorts: readonly PortMapping[]
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

export type Placement<Node> =
  | { readonly ok: true; readonly node: Node; readonly allocation: Allocation }
  | { readonly ok: false; readonly reasons: readonly NodeReason[] }

const memoryFor = (node: Pick<Capacity, 'cpu' | 'memoryMiB'>, demand: Pick<Demand, 'cpu' | 'memoryMiB'>): number =>
  demand.memoryMiB === 0 ? automaticMemoryMiB(demand.cpu, node) : demand.memoryMiB

/** Unknown guests count as macOS where macOS VMs are limited, because one too many does not start. */
export const mayBeMacos = (os: string | undefined): boolean => os !== 'linux' && os !== 'other'

type Find<Node> = (node: Node, demand: Demand) => Obstacle | false | undefined

const shortage = <C extends Shortage['cause']>(
  cause: C,
  free: number,
  total: number,
  requested: number,
): Shortage<C> | false => requested > free && { cause, free, total, requested }

/** Obstacles even on an empty node. */
const lasting: readonly Find<Capacity>[] = [
  ({ architecture: has }, { architecture: requested }) =>
    has !== requested && { cause: 'architecture', has, requested },
  // A node that counts macOS VMs is a Mac, whose problem an operator can solve.
  ({ noMacos: problem, maxMacosVms }, { os }) =>
    os === 'macos' && problem !== undefined && maxMacosVms === undefined && { cause: 'macos', problem },
  ({ tags }, { tag, tagRequired }) => tagRequired && tag !== undefined && !tags.includes(tag) && { cause: 'tag', tag },
  ({ cpu: total }, { cpu }) => shortage('cpu', total, total, cpu),
  (node, demand) => shortage('memory', node.memoryMiB, node.memoryMiB, memoryFor(node, demand)),
  ({ gpus: total }, { gpuPassthrough }) => gpuPassthrough && total < 1 && { cause: 'gpu', total },
]

/** Obstacles that may pass. */
const passing: readonly Find<Candidate>[] = [
  (node) => node.unfit,
  ({ maxVms: limit, vms }) => limit !== undefined && vms >= limit && { cause: 'vms', limit },
  ({ macosVms, maxMacosVms: limit, noMacos: problem }, { os }) =>
    limit !== undefined &&
    mayBeMacos(os) &&
    macosVms >= limit && { cause: 'macosVms', limit, ...(limit === 0 && problem !== undefined && { problem }) },
  ({ freeCpu, cpu: total }, { cpu }) => shortage('cpu', freeCpu, total, cpu),
  (node, demand) => shortage('memory', node.freeMemoryMiB, node.memoryMiB, memoryFor(node, demand)),
  ({ freeGpus, gpus: total }, { gpuPassthrough }) => gpuPassthrough && freeGpus < 1 && { cause: 'gpu', total },
  (node, { reservedPorts }) => {
    const taken = reservedPorts.find(({ nodePort }) => node.isPortTaken(nodePort))
    return taken && { cause: 'port', port: taken.nodePort }
  },
]

function first<Node>(finds: readonly Find<Node>[], node: Node, demand: Demand): Obstacle | undefined {
  for (const find of finds) {
    const obstacle = find(node, demand)
    if (obstacle) return obstacle
  }
  return undefined
}

interface Reported {
  readonly name: string
  readonly tags: readonly string[]
  readonly report?:
    | (Pick<NodeReport, 'architecture' | 'cpu' | 'memoryMiB' | 'gpus'> &
        Partial<Pick<Capacity, 'noMacos' | 'maxMacosVms'>>)
    | undefined
}

export const nodeCapacity = ({ name, tags, report }: Reported): Capacity => ({
  name,
  isKnown: report !== undefined,
  tags,
  architecture: report?.architecture ?? 'amd64',
  cpu: report?.cpu ?? 0,
  memoryMiB: report?.memoryMiB ?? 0,
  gpus: report?.gpus ?? 0,
  noMacos: report?.noMacos,
  maxMacosVms: report?.maxMacosVms,
})

/** Nothing is known about nodes that never reported. */
const lastingObstacle = (node: Capacity, demand: Demand): Obstacle | undefined =>
  node.isKnown ? first(lasting, node, demand) : undefined

const obstacleOf = (node: Candidate, demand: Demand): Obstacle | undefined =>
  lastingObstacle(node, demand) ?? first(passing, node, demand)

/** Whether the node was requested, or none was. */
const isRequestedNode = ({ name }: { readonly name: string }, { node }: Demand): boolean =>
  node === undefined || node === name

/** Whether the node was not excluded by name and could take the VM when empty. */
export const couldHold = (node: Capacity, demand: Demand): boolean =>
  isRequestedNode(node, demand) && lastingObstacle(node, demand) === undefined

/**
 * Why no node could hold a VM even when empty, so that waiting does not help. Undefined if a node could, or if there
 * are no nodes yet.
 */
export function neverFits(demand: Demand, nodes: Iterable<Reported>): readonly Never[] | undefined {
  const reasons: Never[] = []
  for (const node of nodes) {
    if (!isRequestedNode(node, demand)) continue
    const capacity = nodeCapacity(node)
    const obstacle = lastingObstacle(capacity, demand)
    if (!obstacle) return undefined
    reasons.push({ node: node.name, obstacle, capacity })
  }
  return reasons.length > 0 ? reasons.sort((one, other) => (one.node < other.node ? -1 : 1)) : undefined
}

/** Smaller is better, compared in this order: the preferred tag, a cached image, then free room. */
const ranks: readonly ((node: Candidate, demand: Demand) => number)[] = [
  ({ tags }, { tag }) => (tag !== undefined && !tags.includes(tag) ? 1 : 0),
  ({ images }, { image }) => (images.includes(image) ? 0 : 1),
  ({ freeCpu, cpu: total }, { scheduler, cpu }) =>
    scheduler === 'most-allocated' ? (freeCpu - cpu) / total : -((freeCpu - cpu) / total),
  ({ vms }, { scheduler }) => (scheduler === 'most-allocated' ? -vms : vms),
]

function isBetter(node: Candidate, other: Candidate, demand: Demand): boolean {
  for (const rank of ranks) {
    const one = rank(node, demand)
    const another = rank(other, demand)
    if (one !== another) return one < another
  }
  return false
}

export function place<Node extends Candidate>(demand: Demand, nodes: Iterable<Node>): Placement<Node> {
  const reasons: NodeReason[] = []
  let best: { readonly node: Node; readonly allocation: Allocation } | undefined
  for (const node of nodes) {
    if (!isRequestedNode(node, demand)) continue
    const obstacle = obstacleOf(node, demand)
    if (obstacle) {
      reasons.push({ node: node.name, obstacle })
      continue
    }
    if (best && !isBetter(node, best.node, demand)) continue
    const allocation = allocate(node, demand)
    if (allocation) best = { node, allocation }
    else reasons.push({ node: node.name, obstacle: { cause: 'ports' } })
  }
  return best ? { ok: true, ...best } : { ok: false, reasons }
}

/** Does not use ports that the same VM has reserved. */
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

/** The fields of a VM's record that matter for placement. */
interface PlacementFields extends Pick<Demand, 'os' | 'reservedPorts'> {
  readonly shape: Omit<Demand, 'os' | 'reservedPorts'>
  /** The reference with a digest, because nodes may have cached an earlier image of the tag. */
  readonly imageReference?: string | undefined
}

export const demandOf = ({ shape, reservedPorts, imageReference, os }: PlacementFields): Demand => ({
  ...shape,
  image: imageReference ?? shape.image,
  os,
  reservedPorts,
})
