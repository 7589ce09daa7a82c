// Why a VM cannot be placed: a sentence for one node, and a summary by cause for many. Everything that differs between
// causes is in one table.
import { ApiError } from '../api/errors.ts'
import type { Vm } from '../api/vms/vms.ts'
import type { Candidate, Capacity, Demand, Never, NodeReason, Obstacle, Shortage } from './placement.ts'
import { place } from './placement.ts'
import { counted, memorySize } from './sizes.ts'

type Cause = Obstacle['cause']
type Of<C extends Cause> = Extract<Obstacle, { cause: C }>
type RequestedResources = Pick<Demand, 'node' | 'cpu' | 'memoryMiB' | 'architecture' | 'gpuPassthrough'>

const isShortage = (obstacle: Obstacle): obstacle is Shortage => obstacle.cause === 'cpu' || obstacle.cause === 'memory'
/** Whether more is requested than the node has in total. */
const isBeyond = ({ total, requested }: Shortage): boolean => total < requested

interface Group<C extends Cause = Cause> {
  readonly cause: C
  readonly reasons: readonly NodeReason[]
  readonly obstacles: readonly Of<C>[]
  readonly first: Of<C>
}

/** The subject of a sentence: one node by name, several by number. */
interface Subject {
  readonly nodes: string
  readonly isOne: boolean
}

interface Nodes<C extends Cause> extends Group<C>, Subject {
  /** Whether the headline names what is short. */
  readonly isShort: boolean
}

interface Row<C extends Cause> {
  /** Ineligible nodes can never take the VM, so messages are about the others. */
  readonly kind: 'capacity' | 'unavailable' | 'ineligible'
  /** Follows the name of a node. */
  one(obstacle: Of<C>): string
  /** Follows "No node". */
  none(group: Group<C>, demand: RequestedResources): string
  /** What applies to these nodes; undefined if the headline says enough. */
  some(nodes: Nodes<C>): string | undefined
  /** For ineligible nodes: what the other nodes are called. */
  others?(noun: string, obstacle: Of<C>): string
  /** The field of a deployment that the cause is about. Default: cpu. */
  readonly field?: string
  readonly hint?: (demand: Demand, namespace: string) => string
}

const freeIn = (shortages: readonly Shortage[]): string => (shortages.every(isBeyond) ? '' : ' free')
const maxIn = (shortages: readonly Shortage[]): number => Math.max(...shortages.map(({ free }) => free))
const problemsIn = (obstacles: readonly { readonly problem?: string }[]): string =>
  [...new Set(obstacles.flatMap(({ problem }) => problem ?? []))].slice(0, 2).join(', ')
const be = ({ nodes, isOne }: Subject, what: string): string => `${nodes} ${isOne ? 'is' : 'are'} ${what}`
const have = ({ nodes, isOne }: Subject, what: string): string => `${nodes} ${isOne ? 'has' : 'have'} ${what}`
const haveAtMost = ({ nodes, isOne }: Subject, what: string): string =>
  `${nodes} ${isOne ? 'has' : 'have at most'} ${what}`

/** In order of how close the node is to fitting. */
const rows: { readonly [C in Cause]: Row<C> } = {
  cpu: {
    kind: 'capacity',
    one: (short) =>
      isBeyond(short)
        ? `has ${counted(short.total, 'core')}; ${short.requested} requested`
        : `has ${short.free} of ${counted(short.total, 'core')} free; ${short.requested} requested`,
    none: ({ first, obstacles }) => `has ${counted(first.requested, 'core')}${freeIn(obstacles)}`,
    some(group) {
      const most = maxIn(group.obstacles)
      return haveAtMost(group, group.isShort ? `${most}` : `${counted(most, 'core')}${freeIn(group.obstacles)}`)
    },
  },
  memory: {
    kind: 'capacity',
    one: (short) =>
      isBeyond(short)
        ? `has ${memorySize(short.total)} of memory; ${memorySize(short.requested)} requested`
        : `has ${memorySize(short.free)} of ${memorySize(short.total)} memory free; ${memorySize(short.requested)} requested`,
    none: ({ first, obstacles }, { memoryMiB }) =>
      `has ${memoryMiB === 0 ? 'enough' : `${memorySize(first.requested)} of`} memory${freeIn(obstacles)}`,
    some(group) {
      const most = memorySize(maxIn(group.obstacles))
      return haveAtMost(group, group.isShort ? most : `${most} of memory${freeIn(group.obstacles)}`)
    },
    field: 'memory',
  },
  gpu: {
    kind: 'capacity',
    one: ({ total }) => (total < 1 ? 'has no GPU' : 'has no free GPU'),
    none: ({ obstacles }) => (obstacles.every(({ total }) => total < 1) ? 'has a GPU' : 'has a free GPU'),
    some: (group) => (group.isShort ? undefined : have(group, 'no free GPU')),
    field: 'gpuPassthrough',
    hint: () => 'Add a node with a GPU, or deploy without one',
  },
  port: {
    kind: 'capacity',
    one: ({ port }) => `does not have port ${port} free`,
    none: ({ first }) => `has port ${first.port} free`,
    some: (group) => (group.isShort ? undefined : have(group, 'a requested port in use')),
  },
  ports: {
    kind: 'capacity',
    one: () => 'has no free ports',
    none: () => 'has free ports',
    some: (group) => (group.isShort ? undefined : have(group, 'no free ports')),
  },
  vms: {
    kind: 'capacity',
    one: ({ limit }) => `is at its limit of ${counted(limit, 'VM')}`,
    none: () => 'can run another VM',
    some: (group) => be(group, `at ${group.isOne ? 'its' : 'their'} VM limit`),
  },
  macosVms: {
    kind: 'capacity',
    one: ({ limit, problem }) =>
      problem !== undefined
        ? `cannot run macOS guests: ${problem}`
        : limit === 0
          ? 'cannot run more macOS VMs: others on its host reach Apple’s limit'
          : `is at Apple’s limit of ${counted(limit, 'macOS VM')} per host`,
    none: () => 'can run another macOS VM',
    some: (group) => {
      const problems = problemsIn(group.obstacles)
      return problems === ''
        ? be(group, 'at Apple’s limit of macOS VMs')
        : `${group.nodes} cannot run more macOS guests: ${problems}`
    },
  },
  cordoned: {
    kind: 'unavailable',
    one: () => 'is cordoned',
    none: () => 'is available',
    some: (group) => be(group, 'cordoned'),
  },
  disconnected: {
    kind: 'unavailable',
    one: () => 'is not connected',
    none: () => 'is available',
    some: (group) => be(group, 'not connected'),
  },
  broken: {
    kind: 'unavailable',
    one: ({ problem }) => `cannot run VMs: ${problem}`,
    none: () => 'is available',
    some: ({ nodes, obstacles }) => `${nodes} cannot run VMs: ${problemsIn(obstacles)}`,
  },
  reserved: {
    kind: 'unavailable',
    one: ({ vm }) => `is kept free for VM ${vm}, which has waited longer`,
    none: () => 'is available',
    some: (group) => be(group, `kept free for VM ${group.first.vm}`),
  },
  tag: {
    kind: 'ineligible',
    one: ({ tag }) => `does not have tag ${tag}`,
    none: ({ first }) => `has tag ${first.tag}`,
    some: ({ nodes, isOne, isShort, first }) =>
      isShort ? undefined : `${nodes} ${isOne ? 'does' : 'do'} not have tag ${first.tag}`,
    others: (noun, { tag }) => `${noun} with tag ${tag}`,
    field: 'tag',
    hint: ({ tag }, namespace) => `Tag a node: svc3 node tag NODE ${tag} -n ${namespace}`,
  },
  macos: {
    kind: 'ineligible',
    one: ({ problem }) => `cannot run macOS guests: ${problem}`,
    none: () => 'can run macOS guests',
    some: ({ nodes, isShort, obstacles }) =>
      isShort ? problemsIn(obstacles) : `${nodes} cannot run macOS guests: ${problemsIn(obstacles)}`,
    others: (noun) => `${noun} that can run macOS guests`,
    field: 'image',
    hint: () => 'Choose another image, or add a Mac',
  },
  architecture: {
    kind: 'ineligible',
    one: ({ has, requested }) => `is ${has}; the image is ${requested}`,
    none: (_, { architecture }) => `is ${architecture}`,
    some: (group) => be(group, group.first.has),
    others: (noun, { requested }) => `${requested} ${noun}`,
    field: 'image',
    hint: ({ architecture }) => `Choose another image, or add an ${architecture} node`,
  },
}

const causes = Object.keys(rows) as Cause[]
/** For a cause that is known only at run time. */
const rowOf = (cause: Cause): Row<Cause> => rows[cause] as Row<Cause>
const isOfKind = (kind: Row<Cause>['kind'], { cause }: Pick<Group, 'cause'>): boolean => rowOf(cause).kind === kind

export const obstacleText = (obstacle: Obstacle): string => rowOf(obstacle.cause).one(obstacle)

function groupsOf(reasons: readonly NodeReason[]): Group[] {
  return causes.flatMap((cause): Group[] => {
    const own = reasons.filter(({ obstacle }) => obstacle.cause === cause)
    const obstacles = own.map(({ obstacle }) => obstacle)
    const [first] = obstacles
    return first ? [{ cause, reasons: own, obstacles, first }] : []
  })
}

/** A sentence with the causes and the number of nodes for each. */
export function summaryOf(reasons: readonly NodeReason[], demand: RequestedResources, namespace: string): string {
  const groups = groupsOf(reasons)
  const [first] = groups
  const [only] = reasons
  if (!first || !only)
    return demand.node === undefined ? `No nodes in ${namespace}` : `Node ${demand.node} not found in ${namespace}`
  if (reasons.length === 1) return `Node ${only.node} ${obstacleText(only.obstacle)}`
  const eligible = groups.filter((group) => !isOfKind('ineligible', group))
  const isOneKind = eligible.length < 2 || eligible.every((group) => isOfKind('unavailable', group))
  // In a large fleet a shortage is reported for all nodes, otherwise for eligible ones.
  const isAboutFleet = reasons.length > fewNodes && isShortage(first.first)
  const shown = isAboutFleet ? groups : groups.filter((group) => group === first || !isOfKind('ineligible', group))
  const noun = groups
    .filter((group) => !shown.includes(group))
    .reduce((text, { cause, first: obstacle }) => rowOf(cause).others?.(text, obstacle) ?? text, 'node')
  const headline = `No ${noun} ${isOneKind ? rowOf(first.cause).none(first, demand) : `fits ${requestOf(demand)}`}`
  const isMixed = shown.some(({ cause }) => cause === 'architecture')
  const details = shown.flatMap((group) => {
    const [{ node }] = group.reasons as [NodeReason]
    const isOne = group.reasons.length === 1
    const adjective = isMixed && group.cause !== 'architecture' ? `${demand.architecture} ` : ''
    const nodes = isOne ? `node ${node}` : `${group.reasons.length} ${adjective}nodes`
    return rowOf(group.cause).some({ ...group, nodes, isOne, isShort: isOneKind && group === first }) ?? []
  })
  return details.length > 0 ? `${headline}: ${details.join('; ')}` : headline
}

/** A larger number of nodes counts as a fleet. */
const fewNodes = 3

const requestOf = ({ cpu, memoryMiB, gpuPassthrough }: Pick<Demand, 'cpu' | 'memoryMiB' | 'gpuPassthrough'>): string =>
  listed([
    counted(cpu, 'core'),
    ...(memoryMiB === 0 ? [] : [`${memorySize(memoryMiB)} of memory`]),
    ...(gpuPassthrough ? ['a GPU'] : []),
  ])

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`

/** Whether cores are the only resource that other VMs hold and this one lacks. */
export const isAboutCores = (reasons: readonly NodeReason[]): boolean => {
  const held = groupsOf(reasons).filter((group) => isOfKind('capacity', group))
  return held.length === 1 && held[0]?.cause === 'cpu'
}

export const isAboutPorts = (reasons: readonly NodeReason[]): boolean =>
  reasons.some(({ obstacle: { cause } }) => cause === 'port' || cause === 'ports')

/**
 * The error for a VM that no node could hold even when empty. `isDefaultCpu`: the cores were not chosen by the caller.
 */
export function impossible(
  never: readonly Never[],
  demand: Demand,
  namespace: string,
  { isDefaultCpu = false }: { readonly isDefaultCpu?: boolean } = {},
): ApiError {
  const eligible = never.filter(({ obstacle }) => !isOfKind('ineligible', obstacle))
  const [first] = groupsOf(never)
  const row: Partial<Row<Cause>> = first ? rowOf(first.cause) : {}
  const isSize = demand.node === undefined && eligible.some(({ obstacle }) => isShortage(obstacle))
  const { message, hint } = isSize
    ? tooLarge(
        eligible.map(({ capacity }) => capacity),
        demand,
        { hasOthers: never.length > eligible.length, isDefaultCpu },
      )
    : { message: summaryOf(never, demand, namespace), hint: hintFor(row, demand, namespace) }
  const field = demand.node === undefined ? (row.field ?? 'cpu') : 'node'
  return new ApiError('Invalid', message, {
    kind: 'vms',
    causes: [{ field, reason: 'FieldValueNotSupported', message }],
    hint,
  })
}

function tooLarge(
  nodes: readonly Capacity[],
  demand: Demand,
  { hasOthers, isDefaultCpu }: { readonly hasOthers: boolean; readonly isDefaultCpu: boolean },
): { readonly message: string; readonly hint: string } {
  const { cpu, memoryMiB, gpuPassthrough, architecture, tag, tagRequired } = demand
  const isCpuShort = nodes.every((node) => node.cpu < cpu)
  const isMemoryShort = nodes.every((node) => node.memoryMiB < memoryMiB)
  const short = [
    ...(isCpuShort ? [`${counted(cpu, 'core')}${isDefaultCpu ? ' (the default)' : ''}`] : []),
    ...(isMemoryShort ? [`${memorySize(memoryMiB)} of memory`] : []),
    ...(gpuPassthrough && nodes.every(({ gpus }) => gpus < 1) ? ['a GPU'] : []),
  ]
  const byMemory = isMemoryShort && !isCpuShort
  const size = (node: Capacity): readonly [number, number] =>
    byMemory ? [node.memoryMiB, node.cpu] : [node.cpu, node.memoryMiB]
  const largest = nodes.reduce((best, node) => {
    const [[a, b], [c, d]] = [size(node), size(best)]
    return a > c || (a === c && b > d) ? node : best
  })
  const kind = `${hasOthers ? `${architecture} ` : ''}node${tagRequired && tag !== undefined ? ` with tag ${tag}` : ''}`
  const has = `${counted(largest.cpu, 'core')} and ${memorySize(largest.memoryMiB)}`
  const what = short.length > 0 ? listed(short) : requestOf(demand)
  return {
    message: `No ${kind} can hold ${what}; the largest has ${has}`,
    hint: `${smaller(nodes, demand) ?? 'Request less'}, or add a larger node`,
  }
}

/** The largest request that would fit if one resource were reduced; undefined if that is not enough. */
function smaller(nodes: readonly Capacity[], { cpu, memoryMiB, gpuPassthrough }: Demand): string | undefined {
  const others = nodes.filter(({ gpus }) => !gpuPassthrough || gpus > 0)
  const cores = Math.max(0, ...others.filter((node) => node.memoryMiB >= memoryMiB).map((node) => node.cpu))
  if (cores > 0) return `Try --cpu ${cores}`
  const memory = Math.max(0, ...others.filter((node) => node.cpu >= cpu).map((node) => node.memoryMiB))
  return memory >= 1_024 ? `Try --memory ${Math.floor(memory / 1_024)}` : undefined
}

const hintFor = ({ hint }: Partial<Row<Cause>>, demand: Demand, namespace: string): string =>
  demand.node === undefined
    ? (hint?.(demand, namespace) ?? 'Request less, or add a larger node')
    : `Choose another node: svc3 node list -n ${namespace}`

export const shownVerdicts = 100

/** Why each node can or cannot take a VM. */
export const verdictsOn = (demand: Demand, nodes: readonly Candidate[]): NonNullable<Vm['nodes']> =>
  nodes.map((node) => {
    const found = place(demand, [node])
    const { name, freeCpu, cpu, freeMemoryMiB, memoryMiB } = node
    const room = `has ${freeCpu} of ${counted(cpu, 'core')} and ${memorySize(freeMemoryMiB)} of ${memorySize(memoryMiB)} memory free`
    if (found.ok) return { name, fits: true, reason: room }
    const [reason] = found.reasons
    return { name, fits: false, reason: reason ? obstacleText(reason.obstacle) : 'is not the requested node' }
  })
