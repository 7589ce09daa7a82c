// Connections to VMs through the service. Nodes are never dialled: an agent is asked over its stream to connect, and
// its WebSocket is joined with the caller's. A tunnel has an unguessable name and a single use.
import { randomBytes } from 'node:crypto'
import { type Duplex, pipeline, type Readable } from 'node:stream'
import { ApiError, notFound } from '../../api/errors.ts'
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

/** An agent that is there answers at once. */
const answerMs = 10_000
const maxWaiting = 1_000

const mute: ReadonlySet<VmRecord['observed']['power']> = new Set(['pending', 'stopped', 'failed'])

interface How {
  readonly to: Target
  readonly follow?: boolean
  readonly tail?: number
  readonly minutes?: number
}

/** Whom to ask, about which VM; '' for the node itself. */
interface Place {
  readonly node: string
  readonly uid: string
  readonly namespace: string
  readonly about: { readonly kind: string; readonly name: string }
}

function placeOf({ name, uid, namespace, place }: VmRecord): Place {
  const about = { kind: 'vms', name }
  if (place) return { node: place.node, uid, namespace, about }
  throw new ApiError('Conflict', `VM ${name} is not on a node yet`, { ...about, hint: 'Wait until it is running' })
}

const defaultMinutes = 60
/** Six series of a day in their longest form are a tenth of it. */
const maxChartBytes = 2 ** 21

interface Measured<N> {
  readonly stepSeconds: number
  readonly series: {
    readonly name: N
    readonly unit: Charts['series'][number]['unit']
    readonly start: number
    readonly values: (number | null)[]
  }[]
}

/** Of an agent that knows no measurements nothing comes. */
function parsed<N>(text: string): Measured<N> | undefined {
  try {
    const { stepSeconds, series } = JSON.parse(text) as Measured<N>
    const isSound = ({ name, unit, start, values }: Measured<N>['series'][number]): boolean =>
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
  readonly take: Accept['take']
}

export class Tunnels {
  readonly #nodes: Pick<NodeRelay, 'tell' | 'prefix'>
  readonly #waiting = new Map<string, Waiting>()

  constructor(nodes: Pick<NodeRelay, 'tell' | 'prefix'>) {
    this.#nodes = nodes
  }

  /** What to do with the caller's connection once it is open. Refuses before that what cannot work. */
  async connect(vm: VmRecord, port = 'ssh'): Promise<Accept> {
    const agentSide = await this.dial(vm, port)
    return { take: (callerSide) => pipeBoth(callerSide, agentSide), drop: () => agentSide.destroy() }
  }

  /** A port of a VM as a stream of bytes. */
  async dial(vm: VmRecord, port: string): Promise<Duplex> {
    const to = targets.find((each) => each === port)
    if (!to)
      throw new ApiError('Invalid', `Unknown port "${port}"; use ${targets.join(', ')}`, { kind: 'vms', name: vm.name })
    if (to === 'vnc' && vm.place && vm.place.vnc === undefined)
      throw new ApiError('Conflict', `VM ${vm.name} was deployed without a screen (vncConsole: false)`, {
        kind: 'vms',
        name: vm.name,
        hint: 'Deploy it with vncConsole: true',
      })
    if (vm.place && mute.has(vm.observed.power))
      throw new ApiError('Conflict', `VM ${vm.name} is ${vm.observed.power} and cannot be reached`, {
        kind: 'vms',
        name: vm.name,
        hint: `Check it: svc3 vm list ${vm.name} -n ${vm.namespace}`,
      })
    return this.#dial(placeOf(vm), { to })
  }

  /** The console of a VM as a stream of bytes. */
  async read(vm: VmRecord, options: { follow: boolean; tail: number | undefined }): Promise<Readable> {
    const { follow, tail } = options
    return this.#dial(placeOf(vm), { to: 'log', follow, ...(tail !== undefined && { tail }) })
  }

  /** What the node of a VM measures of it, as its agent says it. */
  async measureVm(vm: VmRecord, minutes = defaultMinutes): Promise<ResponseOf<typeof getVmCharts>> {
    return this.#measure(placeOf(vm), minutes)
  }

  measureNode(
    { name, namespace }: Pick<NodeRecord, 'name' | 'namespace'>,
    minutes = defaultMinutes,
  ): Promise<ResponseOf<typeof getNodeCharts>> {
    return this.#measure({ node: name, uid: '', namespace, about: { kind: 'nodes', name } }, minutes)
  }

  async #measure<N>(place: Place, minutes: number): Promise<Measured<N>> {
    const parts: Buffer[] = []
    let bytes = 0
    for await (const part of (await this.#dial(place, { to: 'charts', minutes })) as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > maxChartBytes) break
      parts.push(part)
    }
    const answer = parsed<N>(Buffer.concat(parts).toString())
    if (answer !== undefined) return answer
    throw new ApiError('Conflict', `The agent of node ${place.node} sends no measurements`, {
      ...place.about,
      hint: 'Update the agent of the node',
    })
  }

  /** The id of the server where a tunnel ends, when that is another one. */
  elsewhere(tunnel: string): string | undefined {
    const { prefix } = this.#nodes
    const at = tunnel.indexOf('.')
    return prefix === '' || at < 0 || tunnel.startsWith(prefix) ? undefined : tunnel.slice(0, at)
  }

  /** The agent connects for a tunnel that it was asked to open. */
  answer(node: string, tunnel: string): Accept {
    const waiting = this.#waiting.get(tunnel)
    if (waiting?.node !== node)
      throw notFound('tunnels', tunnel.slice(0, 64), { hint: 'The tunnel expired or never existed' })
    this.#waiting.delete(tunnel)
    // One that is not opened after all is waited for no longer than one that does not come.
    return { take: waiting.take, drop: () => undefined }
  }

  #dial({ node, uid, namespace, about }: Place, how: How): Promise<Duplex> {
    if (this.#waiting.size >= maxWaiting)
      throw new ApiError('TooManyRequests', 'Too many connections are being opened', { retryAfterSeconds: 2 })
    const tunnel = this.#nodes.prefix + randomBytes(16).toString('hex')
    return new Promise((resolve, reject) => {
      let isGivenUp = false
      const give = (error: ApiError): void => {
        isGivenUp = true
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
      const timer = setTimeout(() => give(unavailable()), answerMs)
      const take: Accept['take'] = (stream) => {
        clearTimeout(timer)
        if (isGivenUp) stream.destroy()
        else resolve(stream)
      }
      this.#waiting.set(tunnel, { node, take })
      this.#nodes.tell(node, { type: 'DIAL', tunnel, uid, ...how }).then(
        (isTold) => isTold || give(unavailable()),
        () => give(unavailable()),
      )
    })
  }
}

/** Bytes both ways; the end of one side is the end of the other. */
export function pipeBoth(a: Duplex, b: Duplex): void {
  pipeline(a, b, () => b.destroy())
  pipeline(b, a, () => a.destroy())
}
