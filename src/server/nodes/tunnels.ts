// Connections to VMs through the service. The service never connects to a node: it asks the agent over its stream to open
// a WebSocket, which is joined with that of the caller. A tunnel has an unguessable name and a single use.
import { randomBytes } from 'node:crypto'
import { type Duplex, pipeline, type Readable } from 'node:stream'
import { ApiError, conflict, notFound } from '../../api/errors.ts'
import type { AgentMessage } from '../../api/nodes/agent.ts'
import type { getNodeCharts } from '../../api/nodes/nodes.ts'
import type { ResponseOf } from '../../api/operation.ts'
import type { Charts } from '../../api/service/charts.ts'
import type { getVmCharts } from '../../api/vms/vms.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'
import type { Accept } from '../transfer/upgrades.ts'
import type { NodeRelay } from './node-relay.ts'

type Target = Extract<AgentMessage, { type: 'DIAL' }>['to']
const targets: readonly Target[] = ['ssh', 'vnc', 'screenshare']

const answerMs = 10_000
/** Connections that wait for their agent. */
const maxWaiting = { all: 1_000, ofNamespace: 250 }

const unreachable: ReadonlySet<VmRecord['observed']['power']> = new Set(['pending', 'stopped', 'failed'])

interface DialOptions {
  readonly to: Target
  readonly follow?: boolean
  readonly tail?: number
  readonly minutes?: number
}

interface Destination {
  readonly node: string
  /** The VM, or '' for the node itself. */
  readonly uid: string
  readonly namespace: string
  readonly about: { readonly kind: string; readonly name: string }
}

function destinationOf({ name, uid, namespace, place }: VmRecord): Destination {
  const about = { kind: 'vms', name }
  if (place) return { node: place.node, uid, namespace, about }
  throw conflict('vms', name, 'is not on a node yet', 'Wait until it is running')
}

const defaultMinutes = 60
/** Ten times the size of six series of a day. */
const maxChartBytes = 2 ** 21

interface Measurements<N> {
  readonly stepSeconds: number
  readonly series: {
    readonly name: N
    readonly unit: Charts['series'][number]['unit']
    readonly start: number
    readonly values: (number | null)[]
  }[]
}

/** Returns undefined for what is not measurements. An agent without them sends nothing. */
function parsed<N>(text: string): Measurements<N> | undefined {
  try {
    const { stepSeconds, series } = JSON.parse(text) as Measurements<N>
    const isSound = ({ name, unit, start, values }: Measurements<N>['series'][number]): boolean =>
      typeof name === 'string' &&
      typeof unit === 'string' &&
      Number.isInteger(start) &&
      values.every((value) => value === null || typeof value === 'number')
    return Number.isInteger(stepSeconds) && series.every(isSound) ? { stepSeconds, series } : undefined
  } catch {
    return undefined
  }
}

interface Waiting {
  readonly node: string
  readonly namespace: string
  readonly take: Accept['take']
}

export class Tunnels {
  readonly #nodes: Pick<NodeRelay, 'tell' | 'prefix'>
  readonly #waiting = new Map<string, Waiting>()

  constructor(nodes: Pick<NodeRelay, 'tell' | 'prefix'>) {
    this.#nodes = nodes
  }

  /** Connects the caller to a port of a VM. Throws before the caller's connection opens. */
  async connect(vm: VmRecord, port = 'ssh'): Promise<Accept> {
    const agentSide = await this.dial(vm, port)
    return { take: (callerSide) => pipeBoth(callerSide, agentSide), drop: () => agentSide.destroy() }
  }

  async dial(vm: VmRecord, port: string): Promise<Duplex> {
    const { name, observed } = vm
    const { power } = observed
    const to = targets.find((each) => each === port)
    if (!to) throw new ApiError('Invalid', `Unknown port "${port}"; use ${targets.join(', ')}`, { kind: 'vms', name })
    if (to === 'vnc' && vm.place && vm.place.vnc === undefined)
      throw conflict(
        'vms',
        name,
        'was deployed without a screen (vncConsole: false)',
        'Deploy it with vncConsole: true',
      )
    if (vm.place && unreachable.has(power))
      throw conflict(
        'vms',
        name,
        `is ${power} and cannot be reached`,
        `Check it: svc3 vm list ${name} -n ${vm.namespace}`,
      )
    return this.#dial(destinationOf(vm), { to })
  }

  async read(vm: VmRecord, options: { follow: boolean; tail: number | undefined }): Promise<Readable> {
    const { follow, tail } = options
    return this.#dial(destinationOf(vm), { to: 'log', follow, ...(tail !== undefined && { tail }) })
  }

  async measureVm(vm: VmRecord, minutes = defaultMinutes): Promise<ResponseOf<typeof getVmCharts>> {
    return this.#measure(destinationOf(vm), minutes)
  }

  measureNode(
    { name, namespace }: Pick<NodeRecord, 'name' | 'namespace'>,
    minutes = defaultMinutes,
  ): Promise<ResponseOf<typeof getNodeCharts>> {
    return this.#measure({ node: name, uid: '', namespace, about: { kind: 'nodes', name } }, minutes)
  }

  async #measure<N>(destination: Destination, minutes: number): Promise<Measurements<N>> {
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of (await this.#dial(destination, { to: 'charts', minutes })) as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > maxChartBytes) break
      parts.push(part)
    }
    const answer = parsed<N>(Buffer.concat(parts).toString())
    if (answer !== undefined) return answer
    throw new ApiError('Conflict', `The agent of node ${destination.node} sends no measurements`, {
      ...destination.about,
      hint: 'Update the agent of the node',
    })
  }

  /** The id of the server where a tunnel ends. Undefined if it is this one. */
  elsewhere(tunnel: string): string | undefined {
    const { prefix } = this.#nodes
    const at = tunnel.indexOf('.')
    return prefix === '' || at < 0 || tunnel.startsWith(prefix) ? undefined : tunnel.slice(0, at)
  }

  /** Takes the connection of an agent that was asked to open a tunnel. */
  answer(node: string, tunnel: string): Accept {
    const waiting = this.#waiting.get(tunnel)
    if (waiting?.node !== node)
      throw notFound('tunnels', tunnel.slice(0, 64), { hint: 'The tunnel expired or never existed' })
    this.#waiting.delete(tunnel)
    // If the connection does not open, the caller's timeout ends the wait.
    return { take: waiting.take, drop: () => undefined }
  }

  #dial({ node, uid, namespace, about }: Destination, options: DialOptions): Promise<Duplex> {
    const others = [...this.#waiting.values()]
    const isFull = others.filter((each) => each.namespace === namespace).length >= maxWaiting.ofNamespace
    if (isFull || others.length >= maxWaiting.all)
      throw new ApiError('TooManyRequests', 'Too many connections are being opened', { retryAfterSeconds: 2 })
    const tunnel = this.#nodes.prefix + randomBytes(16).toString('hex')
    return new Promise((resolve, reject) => {
      let isOver = false
      const fail = (error: ApiError): void => {
        isOver = true
        clearTimeout(timer)
        this.#waiting.delete(tunnel)
        reject(error)
      }
      const unavailable = (): ApiError =>
        new ApiError(
          'ServiceUnavailable',
          `Node ${node}${about.kind === 'vms' ? ` of VM ${about.name}` : ''} is not responding`,
          {
            ...about,
            retryAfterSeconds: 5,
            hint: `Check the node: svc3 node list ${node} -n ${namespace}`,
          },
        )
      const timer = setTimeout(() => fail(unavailable()), answerMs)
      const take: Accept['take'] = (stream) => {
        clearTimeout(timer)
        if (isOver) stream.destroy()
        else resolve(stream)
      }
      this.#waiting.set(tunnel, { node, namespace, take })
      this.#nodes.tell(node, { type: 'DIAL', tunnel, uid, ...options }).then(
        (isSent) => isSent || fail(unavailable()),
        () => fail(unavailable()),
      )
    })
  }
}

/** Copies bytes in both directions. When one side ends, the other is ended. */
export function pipeBoth(a: Duplex, b: Duplex): void {
  pipeline(a, b, () => b.destroy())
  pipeline(b, a, () => a.destroy())
}
