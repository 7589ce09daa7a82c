// Words for why a VM goes nowhere: a sentence for one node, and a summary by cause with exact counts for a fleet.
import { ApiError } from '../api/errors.ts'
import type { Vm } from '../api/vms/vms.ts'
import type { Candidate, Capacity, Demand, Never, NodeReason, Obstacle, Shortage } from './placement.ts'
import { place } from './placement.ts'
import { memorySize } from './sizes.ts'

type Cause = Obstacle['cause']
type Of<C extends Cause> = Extract<Obstacle, { cause: C }>

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
const isShortage = (obstacle: Obstacle): obstacle is Shortage => obstacle.cause === 'cpu' || obstacle.cause === 'memory'
/** More than the node has in all. */
const isBeyond = ({ total, requested }: Shortage): boolean => total < requested

/** What follows a node's name, by cause. */
const phrases: { readonly [C in Cause]: (obstacle: Of<C>) => string } = {
  otherNode: () => 'is not the requested node',
  architecture: ({ has, requested }) => `is ${has}; the image is ${requested}`,
  macos: ({ problem }) => `cannot run macOS guests: ${problem}`,
  tag: ({ tag }) => `does not have tag ${tag}`,
  disconnected: () => 'is not connected',
  cordoned: () => 'is cordoned',
  broken: ({ problem }) => `cannot run VMs: ${problem}`,
  vms: ({ limit }) => `is at its limit of ${counted(limit, 'VM')}`,
  macosVms: ({ limit }) =>
    limit === 0
      ? 'cannot run more macOS VMs: others on its host reach Apple’s limit'
      : `is at Apple’s limit of ${counted(limit, 'macOS VM')} per host`,
  cpu: (short) =>
    isBeyond(short)
      ? `has ${counted(short.total, 'core')}; ${short.requested} requested`
      : `has ${short.free} of ${counted(short.total, 'core')} free; ${short.requested} requested`,
  memory: (short) =>
    isBeyond(short)
      ? `has ${memorySize(short.total)} of memory; ${memorySize(short.requested)} requested`
      : `has ${memorySize(short.free)} of ${memorySize(short.total)} memory free; ${memorySize(short.requested)} requested`,
  gpu: ({ total }) => (total < 1 ? 'has no GPU' : 'has no free GPU'),
  port: ({ port }) => `does not have port ${port} free`,
  ports: () => 'has no free ports',
}

/** Why one node cannot take it: what follows the node's name. */
export const reasonOf = (obstacle: Obstacle): string => phrases[obstacle.cause](obstacle as never)

/** Nodes with these are not meant for the VM; what the others lack is the news. */
const ineligible: readonly Cause[] = ['tag', 'macos', 'architecture']
/** Closest to fitting first. */
const order: readonly Cause[] = [
  'cpu',
  'memory',
  'gpu',
  'port',
  'ports',
  'vms',
  'macosVms',
  'cordoned',
  'disconnected',
  'broken',
  ...ineligible,
]
const unavailable: readonly Cause[] = ['cordoned', 'disconnected', 'broken']

interface Group {
  readonly cause: Cause
  readonly reasons: readonly NodeReason[]
}

/** Why it goes nowhere, in a sentence: by cause, with how many nodes each keeps. */
export function summaryOf(
  reasons: readonly NodeReason[],
  demand: Pick<Demand, 'node' | 'cpu' | 'memoryMiB' | 'architecture' | 'gpuPassthrough'>,
  namespace: string,
): string {
  const [only] = reasons
  if (!only)
    return demand.node === undefined ? `No nodes in ${namespace}` : `Node ${demand.node} not found in ${namespace}`
  if (reasons.length === 1) return `Node ${only.node} ${reasonOf(only.obstacle)}`
  const groups = order.flatMap((cause): Group[] => {
    const own = reasons.filter(({ obstacle }) => obstacle.cause === cause)
    return own.length > 0 ? [{ cause, reasons: own }] : []
  })
  const others = groups.filter(({ cause }) => !ineligible.includes(cause))
  const isOneKind = others.length < 2 || others.every(({ cause }) => unavailable.includes(cause))
  const first = groups[0] as Group
  // Who asks how large a fleet is wants to know of all its nodes; anybody else, of those that are meant.
  const isAboutFleet = reasons.length > fewNodes && isShortage((first.reasons[0] as NodeReason).obstacle)
  const shown = isAboutFleet ? groups : groups.filter((group) => group === first || !ineligible.includes(group.cause))
  const noun = nounFor(groups.filter((group) => !shown.includes(group)))
  const headline = isOneKind ? headlineOf(first, demand, noun) : `No ${noun} fits ${requestOf(demand)}`
  const adjective = shown.some(({ cause }) => cause === 'architecture') ? `${demand.architecture} ` : ''
  const details = shown.flatMap((group) => detailOf(group, isOneKind && group === first, adjective))
  return details.length > 0 ? `${headline}: ${details.join('; ')}` : headline
}

/** Fewer are no fleet. */
const fewNodes = 3

/** A node, other than those of these groups. */
function nounFor(others: readonly Group[]): string {
  const obstacles = others.map(({ reasons }) => (reasons[0] as NodeReason).obstacle)
  return obstacles.reduce((noun, obstacle) => {
    if (obstacle.cause === 'architecture') return `${obstacle.requested} ${noun}`
    return obstacle.cause === 'tag' ? `${noun} with tag ${obstacle.tag}` : `${noun} that can run macOS guests`
  }, 'node')
}

function headlineOf(
  { cause, reasons }: Group,
  demand: Pick<Demand, 'memoryMiB' | 'architecture'>,
  noun: string,
): string {
  const obstacle = (reasons[0] as NodeReason).obstacle
  const free = reasons.every(({ obstacle: each }) => isShortage(each) && isBeyond(each)) ? '' : ' free'
  switch (obstacle.cause) {
    case 'cpu':
      return `No ${noun} has ${counted(obstacle.requested, 'core')}${free}`
    case 'memory':
      return `No ${noun} has ${demand.memoryMiB === 0 ? 'enough' : `${memorySize(obstacle.requested)} of`} memory${free}`
    case 'gpu':
      return reasons.every(({ obstacle: each }) => each.cause === 'gpu' && each.total < 1)
        ? `No ${noun} has a GPU`
        : `No ${noun} has a free GPU`
    case 'port':
      return `No ${noun} has port ${obstacle.port} free`
    case 'ports':
      return `No ${noun} has free ports`
    case 'vms':
      return `No ${noun} can run another VM`
    case 'macosVms':
      return `No ${noun} can run another macOS VM`
    case 'tag':
      return `No ${noun} has tag ${obstacle.tag}`
    case 'macos':
      return `No ${noun} can run macOS guests`
    case 'architecture':
      return `No ${noun} is ${demand.architecture}`
    default:
      return cause === 'otherNode' ? 'No other node was requested' : `No ${noun} is available`
  }
}

/** A cause and its nodes: one by name, several by number. `isShort`: the headline has named what is short. */
function detailOf({ cause, reasons }: Group, isShort: boolean, adjective: string): string[] {
  const [only] = reasons as [NodeReason]
  const isOne = reasons.length === 1
  const eligible = isOne ? `node ${only.node}` : `${reasons.length} ${adjective}nodes`
  const [is, has] = isOne ? ['is', 'has'] : ['are', 'have at most']
  const most = Math.max(...reasons.map(({ obstacle }) => (isShortage(obstacle) ? obstacle.free : 0)))
  const word = reasons.every(({ obstacle }) => isShortage(obstacle) && isBeyond(obstacle)) ? '' : ' free'
  switch (cause) {
    case 'cpu':
      return [isShort ? `${eligible} ${has} ${most}` : `${eligible} ${has} ${counted(most, 'core')}${word}`]
    case 'memory':
      return [
        isShort ? `${eligible} ${has} ${memorySize(most)}` : `${eligible} ${has} ${memorySize(most)} of memory${word}`,
      ]
    case 'architecture':
      return [
        `${isOne ? `node ${only.node}` : `${reasons.length} nodes`} ${is} ${(only.obstacle as Of<'architecture'>).has}`,
      ]
    case 'cordoned':
      return [`${eligible} ${is} cordoned`]
    case 'disconnected':
      return [`${eligible} ${is} not connected`]
    case 'vms':
      return [`${eligible} ${is} at ${isOne ? 'its' : 'their'} VM limit`]
    case 'macosVms':
      return [`${eligible} ${is} at Apple’s limit of macOS VMs`]
    case 'macos':
    case 'broken': {
      const problems = [...new Set(reasons.map(({ obstacle }) => (obstacle as Of<'macos' | 'broken'>).problem))]
      if (cause === 'macos' && isShort) return [problems.slice(0, 2).join(', ')]
      const can = cause === 'macos' ? 'cannot run macOS guests' : 'cannot run VMs'
      return [`${eligible} ${can}: ${problems.slice(0, 2).join(', ')}`]
    }
    case 'tag':
      return isShort ? [] : [`${eligible} ${isOne ? 'does' : 'do'} not have tag ${(only.obstacle as Of<'tag'>).tag}`]
    case 'gpu':
      return isShort ? [] : [`${eligible} ${isOne ? 'has' : 'have'} no free GPU`]
    case 'port':
      return isShort ? [] : [`${eligible} ${isOne ? 'has' : 'have'} a requested port in use`]
    default:
      return isShort ? [] : [`${eligible} ${isOne ? 'has' : 'have'} no free ports`]
  }
}

const requestOf = ({ cpu, memoryMiB, gpuPassthrough }: Pick<Demand, 'cpu' | 'memoryMiB' | 'gpuPassthrough'>): string =>
  listed([
    counted(cpu, 'core'),
    ...(memoryMiB === 0 ? [] : [`${memorySize(memoryMiB)} of memory`]),
    ...(gpuPassthrough ? ['a GPU'] : []),
  ])

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`

/** Cores are short, and nothing else that other VMs hold. */
export const isAboutCores = (reasons: readonly NodeReason[]): boolean => {
  const causes = new Set(reasons.map(({ obstacle }) => obstacle.cause))
  const others: readonly Cause[] = ['memory', 'gpu', 'port', 'ports', 'vms', 'macosVms']
  return causes.has('cpu') && !others.some((cause) => causes.has(cause))
}

export const isAboutPorts = (reasons: readonly NodeReason[]): boolean =>
  reasons.some(({ obstacle: { cause } }) => cause === 'port' || cause === 'ports')

/** The field of a deployment that a cause is about. */
const fields: Readonly<Partial<Record<Cause, string>>> = {
  architecture: 'image',
  macos: 'image',
  tag: 'tag',
  memory: 'memory',
  gpu: 'gpuPassthrough',
}

/** Refuses what no node could hold even when empty, with the largest that fits. `isDefaultCpu`: nobody chose the cores. */
export function impossible(
  never: readonly Never[],
  demand: Demand,
  namespace: string,
  { isDefaultCpu = false }: { readonly isDefaultCpu?: boolean } = {},
): ApiError {
  const eligible = never.filter(({ obstacle: { cause } }) => !ineligible.includes(cause))
  const causes = order.filter((cause) => never.some(({ obstacle }) => obstacle.cause === cause))
  const isSize = demand.node === undefined && eligible.some(({ obstacle }) => isShortage(obstacle))
  const { message, hint } = isSize
    ? tooLarge(
        eligible.map(({ capacity }) => capacity),
        demand,
        { hasOthers: never.length > eligible.length, isDefaultCpu },
      )
    : { message: summaryOf(never, demand, namespace), hint: hintFor(causes[0] as Cause, demand, namespace) }
  const field = demand.node === undefined ? (fields[causes[0] as Cause] ?? 'cpu') : 'node'
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

/** The most of what is short that a node has beside all the rest; undefined where less of one thing is not enough. */
function smaller(nodes: readonly Capacity[], { cpu, memoryMiB, gpuPassthrough }: Demand): string | undefined {
  const others = nodes.filter(({ gpus }) => !gpuPassthrough || gpus > 0)
  const cores = Math.max(0, ...others.filter((node) => node.memoryMiB >= memoryMiB).map((node) => node.cpu))
  if (cores > 0) return `Try --cpu ${cores}`
  const memory = Math.max(0, ...others.filter((node) => node.cpu >= cpu).map((node) => node.memoryMiB))
  return memory >= 1_024 ? `Try --memory ${Math.floor(memory / 1_024)}` : undefined
}

function hintFor(cause: Cause, { node, tag, architecture }: Demand, namespace: string): string {
  if (node !== undefined) return `Choose another node: svc3 node list -n ${namespace}`
  if (cause === 'tag') return `Tag a node: svc3 node tag NODE ${tag} -n ${namespace}`
  if (cause === 'architecture') return `Choose another image, or add an ${architecture} node`
  if (cause === 'macos') return 'Choose another image, or add a Mac'
  return cause === 'gpu' ? 'Add a node with a GPU, or deploy without one' : 'Request less, or add a larger node'
}

/** So many are shown. */
export const shownVerdicts = 100

/** What each node has to say about a VM. */
export const verdictsOn = (demand: Demand, nodes: readonly Candidate[]): NonNullable<Vm['nodes']> =>
  nodes.map((node) => {
    const found = place(demand, [node])
    const { name, freeCpu, cpu, freeMemoryMiB, memoryMiB } = node
    const room = `has ${freeCpu} of ${counted(cpu, 'core')} and ${memorySize(freeMemoryMiB)} of ${memorySize(memoryMiB)} memory free`
    if (found.ok) return { name, fits: true, reason: room }
    return { name, fits: false, reason: reasonOf(found.reasons[0]?.obstacle ?? { cause: 'otherNode' }) }
  })
