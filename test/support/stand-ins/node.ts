// A node without a hypervisor in this process, for tests of the server: it joins with a real key and reports every desired
// state as fulfilled, or as a test says. The real agent is in src/agent.
import { generateKeyPairSync, sign } from 'node:crypto'
import type { AgentMessage, DesiredVm, VmReport } from '../../../src/api/nodes/agent.ts'
import type { NodeReport } from '../../../src/api/nodes/node-report.ts'
import { Placements } from '../../../src/controllers/scheduling/placements.ts'
import { scheduleVms } from '../../../src/controllers/scheduling/schedule-vms.ts'
import { timestamp } from '../../../src/platform/clock.ts'
import { desiredFor } from '../../../src/server/nodes/desired.ts'
import { heartbeatSeconds } from '../../../src/server/nodes/fleet.ts'
import type { TestService } from '../rigs/service.ts'

export interface NodeOptions {
  readonly name?: string
  readonly namespace?: string
  readonly report?: Partial<NodeReport>
  /** The reaction to a desired state; undefined for none. */
  readonly react?: (vm: DesiredVm) => Partial<VmReport> | undefined
}

export interface NodeStandIn {
  readonly name: string
  readonly token: string
  /** Everything it received, in order. */
  readonly told: AgentMessage[]
  say(vm: Pick<DesiredVm, 'uid' | 'name' | 'namespace'>, report: Partial<VmReport>): Promise<unknown>
  report(change?: Partial<NodeReport>): Promise<void>
  /** Ends the stream, as if the host had died. */
  disconnect(): void
  connect(): void
}

const nodeReport: NodeReport = {
  ip: '127.0.0.1',
  architecture: 'amd64',
  cpu: 8,
  memoryMiB: 16_384,
  gpus: 0,
  diskFreeGb: 200,
  driver: 'stand-in',
  driverVersion: '1',
  version: '0.0.0-test',
  os: 'test',
  images: [],
  busyPorts: [],
}

/** Reports what is desired. */
const obey = (vm: DesiredVm): Partial<VmReport> => ({
  generation: vm.generation,
  power: vm.power === 'deleted' ? 'removed' : vm.power,
  diskGb: vm.diskGb ?? 1,
})

interface Joining {
  readonly joinToken: string
  /** The time on the server's clock. */
  readonly at: string
  post(path: 'join' | 'token', body: object): Promise<{ readonly token: string }>
}

/** Joins a node with a new key; returns the token of its agent. */
export async function joinAs(name: string, { joinToken, at, post }: Joining): Promise<string> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const spki = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
  await post('join', { token: joinToken, name, publicKey: spki })
  const signature = sign(null, Buffer.from(`svc3-agent\n${name}\n${at}`), privateKey).toString('base64')
  return (await post('token', { name, at, signature })).token
}

export async function startNode(service: TestService, options: NodeOptions = {}): Promise<NodeStandIn> {
  const { services, clock } = service
  const { name = 'node-1', namespace = 'svc-default', react = obey } = options
  const post = async (path: string, body: unknown, token: string | null) => {
    const answer = await service.call('POST', `/api/v1/agent/${path}`, { body, token })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
    return answer.body
  }
  const join = await services.nodeKeys.issueJoinToken(namespace, 3_600)
  const token = await joinAs(name, {
    joinToken: join.token,
    at: timestamp(clock.now()),
    post: (path, body) => post(path, body, null),
  })
  let state = { ...nodeReport, ...options.report }
  let stream: ReturnType<typeof services.fleet.open> | undefined
  const told: AgentMessage[] = []

  const say: NodeStandIn['say'] = (vm, report) => {
    const { uid, name: vmName, namespace: vmNamespace } = vm
    const whole = { uid, name: vmName, namespace: vmNamespace, generation: 0, power: 'running', ...report }
    return post('vms', { vms: [whole] }, token)
  }
  const hear = (message: AgentMessage): void => {
    told.push(message)
    const vms = message.type === 'HELLO' ? message.vms : message.type === 'VM' ? [message.vm] : []
    for (const vm of vms) {
      const answer = react(vm)
      if (answer) void say(vm, answer).catch(() => undefined)
    }
  }
  const timing = { heartbeatSeconds, spreadMs: 0 } as const
  const connect = (): void => {
    const hello = () => ({ type: 'HELLO' as const, ...desiredFor(services, name), ...timing })
    const write = (lines: string): boolean => {
      for (const line of lines.split('\n')) if (line !== '') hear(JSON.parse(line))
      return true
    }
    stream = services.fleet.open(name, hello, { write, end: () => undefined })
    stream.resume()
  }
  const report = async (change: Partial<NodeReport> = {}): Promise<void> => {
    state = { ...state, ...change }
    await post('node', state, token)
  }
  await report()
  connect()
  await report()
  return { name, token, told, say, report, connect, disconnect: () => stream?.end() }
}

/** The scheduler of a test service; src/control-plane/control-plane.ts starts the real one. */
export function startScheduler(service: TestService): AsyncDisposable {
  const { services } = service
  const placements = new Placements(services, services.fleet)
  const loop = scheduleVms(services, placements)
  const unsubscribe = services.fleet.subscribe(() => loop.nudge())
  return {
    [Symbol.asyncDispose]: async () => {
      unsubscribe()
      await loop.stop()
      placements.stop()
    },
  }
}

export async function addImage(service: TestService, name: string, architecture: 'arm64' | 'amd64'): Promise<void> {
  const at = timestamp(service.clock.now())
  const record = {
    name,
    description: '',
    architecture,
    sizeBytes: 2 ** 30,
    owner: 'test',
    source: 'test',
    sourceNamespace: 'svc-default',
    createdAt: at,
    updatedAt: at,
  }
  await service.services.collections.images.create('', name, { ...record, recipe: name })
}
