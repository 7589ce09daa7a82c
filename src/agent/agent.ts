// The agent of a node: joins the cluster, keeps the stream from the server open, runs a worker for each VM, and reports.
import path from 'node:path'
import { type AgentMessage, reportVms } from '../api/nodes/agent.ts'
import type { Trust } from '../client/tls.ts'
import { systemClock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { reasonOf } from '../platform/reason.ts'
import { retry, retryPolicies } from '../platform/retry.ts'
import { Captures } from './captures/captures.ts'
import { captureServer } from './captures/server.ts'
import { openCaptureStates } from './captures/states.ts'
import type { Check } from './doctor/doctor.ts'
import { createHostChecks } from './doctor/host-checks.ts'
import { type CapacityOptions, createCapacity, NoAddress } from './host/capacity.ts'
import { holdFolder } from './host/hold-folder.ts'
import { createAddresses } from './link/addresses.ts'
import { type AgentConnection, createConnection, isRetriable } from './link/connection.ts'
import { startHeartbeat } from './link/heartbeat.ts'
import { openNodeIdentity } from './link/identity.ts'
import { createNodeReporter } from './link/node-reporter.ts'
import { connectionProblem } from './link/outage-log.ts'
import type { NodeCredentials } from './link/peer-tls.ts'
import { Reports } from './link/reports.ts'
import { ServerStream } from './link/stream.ts'
import { Measurements } from './measurements/measurements.ts'
import { type NodeImages, type NodeImagesOptions, openNodeImages } from './node-images.ts'
import { type Durability, openHandles } from './state/handles.ts'
import { openLastSeenStore } from './state/last-seen-store.ts'
import { growGuest } from './vms/grow.ts'
import { probeSsh } from './vms/guest-watch.ts'
import { Roster } from './vms/roster.ts'
import { createTunnels } from './vms/tunnels.ts'
import type { Tools } from './vms/work.ts'

export interface AgentOptions extends NodeImagesOptions {
  /** The servers of one cluster. If one does not respond, the next is tried. */
  readonly apiUrls: readonly string[]
  readonly name: string
  readonly version: string
  readonly capacity?: CapacityOptions
  /** Checks of the host, repeated and reported. */
  readonly checks?: readonly Check[]
  /** Called if the node has not joined the cluster, or was removed from it. */
  readonly joinToken?: (() => Promise<string>) | undefined
  /** Replaces the key of a node that has joined. */
  readonly renewKey?: boolean
  /** Removes VMs that the server's first list does not contain, even those that an earlier agent kept. */
  readonly removeUnknown?: boolean
  /** Tests only, like the next two. */
  readonly durability?: Durability
  readonly graceSeconds?: number
  readonly stopTimeoutMs?: number
  readonly trust?: Trust | undefined
  /** The fingerprint of the servers' key. It is stored when the node joins, for the next start. */
  readonly pin?: string | undefined
}

export interface Agent {
  readonly name: string
  /** Resolves when the server has sent the desired state for the first time. */
  readonly ready: Promise<void>
  /** Resolves if the agent cannot continue: the cluster no longer knows this node, or the node has no address. */
  readonly failed: Promise<Error>
  /** Ends the agent. VMs keep running. */
  stop(): Promise<void>
}

const defaultGraceSeconds = 30
const defaultStopTimeoutMs = 5_000
const firstHeartbeatSeconds = 10
const maxRefusals = 5
/** More connections than chunks are fetched ahead, so that a chunk that a guest waits for gets one at once. */
const maxChunkSockets = 16

/** Joins the cluster, retrying until a server responds. Throws if it refuses, or if the folder cannot be used. */
export async function startAgent(options: AgentOptions, signal = new AbortController().signal): Promise<Agent> {
  const release = await holdFolder(options.folder)
  try {
    const identity = await openNodeIdentity(options.folder, options.name, options.pin)
    const addresses = createAddresses(options.apiUrls, options.name)
    const connection = createConnection({ ...options, addresses, identity })
    await join(connection, options.log, signal)
    // Content has its own connections: if it delayed reports, the server would consider the node lost. Chunks have
    // separate ones, because a chunk occupies a connection for long on a slow network.
    const joined = { ...options, addresses, joinToken: undefined, identity }
    const content = createConnection(joined)
    const chunks = createConnection({ ...joined, maxSockets: maxChunkSockets })
    const connections: Connections = {
      ...{ connection, content, chunks },
      credentials: () => identity.credentials,
      saw(revision) {
        for (const each of [connection, content, chunks]) each.saw(revision)
      },
      learn(urls) {
        if (!addresses.learn(connection.apiUrl, urls)) return
        identity.remember(addresses.all).catch((error: unknown) => {
          options.log.warn('failed to save the server addresses', { folder: options.folder, problem: reasonOf(error) })
        })
      },
    }
    const agent = await runAgent(options, connections)
    return { ...agent, stop: () => agent.stop().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

const join = (connection: AgentConnection, log: Log, signal: AbortSignal): Promise<void> =>
  retry(() => connection.join(signal), {
    policy: { ...retryPolicies.background, maxDelayMs: 5_000 },
    signal,
    isRetriable,
    onWait: ({ error, attempt }) => {
      const problem = connectionProblem(error)
      log.warn('cannot join the cluster yet', { address: connection.apiUrl, problem, attempt })
      connection.turn()
    },
  })

interface Connections {
  readonly connection: AgentConnection
  readonly content: AgentConnection
  readonly chunks: AgentConnection
  credentials(): NodeCredentials | undefined
  /** Tells all connections the revision, because the next call may reach another server than the one that sent it. */
  saw(revision: string | undefined): void
  learn(urls: readonly string[]): void
}

type VmTools = Omit<Tools, 'handles' | 'images' | 'captures'>

const vmToolsOf = ({ driver, imageFolder, graceSeconds = defaultGraceSeconds }: AgentOptions): VmTools => ({
  driver,
  isoFolder: path.join(imageFolder, 'isos'),
  graceSeconds,
  grow: growGuest,
  probeSsh: driver.isSimulation ? undefined : probeSsh,
})

type MessageHandlers = {
  readonly [T in AgentMessage['type']]: (message: Extract<AgentMessage, { type: T }>) => void
}

async function runAgent(options: AgentOptions, connections: Connections): Promise<Agent> {
  const { name, driver, folder, log } = options
  const { connection, content } = connections
  const { isSimulation = false } = driver
  const durability = options.durability ?? (isSimulation ? 'written' : 'synced')
  const ready = Promise.withResolvers<void>()
  const failed = Promise.withResolvers<Error>()

  const nodeChanged = (): void => heartbeat.nudge()
  const parts = await openNodeImages(options, connections, nodeChanged)
  const { images, pins, peerServer } = parts
  const reports = new Reports({
    send: async (vms, signal) => {
      const { figures } = images
      const body = { vms: [...vms], ...(figures && { images: { ...figures } }) }
      return (await connection.call(reportVms, { body }, signal)).unknown
    },
    // The VM is not removed for this reason. A new HELLO is requested, whose list decides.
    unknown: (uid) => {
      const worker = roster.get(uid)
      if (worker && !worker.isSilent) stream.renew()
    },
    log,
  })
  const captures = new Captures({
    node: name,
    driver,
    images,
    packer: parts.packer,
    content: parts.content,
    states: openCaptureStates(path.join(folder, 'captures')),
    server: captureServer(content),
    changed: (uid) => roster.get(uid)?.wake(),
    log,
  })
  const handles = openHandles(folder, driver.name, durability)
  const tools = { ...vmToolsOf(options), handles, images, captures }
  const stopTimeoutMs = options.stopTimeoutMs ?? defaultStopTimeoutMs
  const roster = new Roster({
    context: { node: name, tools, reports, log, stopTimeoutMs, nodeChanged },
    lastSeen: await openLastSeenStore(folder, durability, log),
    nodeUid: () => connection.nodeUid,
    removeUnknown: options.removeUnknown ?? false,
    log,
  })
  const measurements = await Measurements.start({
    folder,
    vms: () => roster.all().map(({ handle, desired }) => ({ handle, cores: desired?.cpu ?? 1 })),
    usage: driver.measuring?.usage,
    images: () => images.lookups(),
    clock: systemClock,
    log,
  })
  const tunnels = createTunnels({
    connect: connection.dial,
    find: (uid) => roster.get(uid)?.tunnelTarget,
    measured: (uid, minutes) =>
      JSON.stringify(measurements.read(uid === '' ? undefined : (roster.get(uid)?.handle.uid ?? uid), minutes)),
    log,
  })
  const report = createNodeReport(options, connections, parts, roster)

  await captures.adopt()
  const count = await roster.adopt()
  if (count > 0) log.info('found VMs of an earlier agent', { node: name, count })

  const stream = new ServerStream({
    connection,
    prepare: (signal) =>
      report.sendAll(signal).catch((error: unknown) => {
        // Retrying would not help.
        if (error instanceof NoAddress) failed.resolve(error)
        throw error
      }),
    received: (message) => (received[message.type] as (message: AgentMessage) => void)(message),
    refused: (error, times) => times >= maxRefusals && failed.resolve(error),
    log,
  })
  const heartbeat = startHeartbeat({
    firstSeconds: firstHeartbeatSeconds,
    check: () => stream.check(heartbeat.everyMs),
    beat: async (signal) => {
      if (stream.isOpen) await report.send(signal)
    },
    failed: (error) => log.debug('a heartbeat failed', { node: name, problem: reasonOf(error) }),
  })

  const received: MessageHandlers = {
    HELLO(hello) {
      connections.saw(hello.store.revision)
      roster.hello(hello)
      pins.setDesired(hello.cache)
      heartbeat.every(hello.heartbeatSeconds)
      if (hello.servers) connections.learn(hello.servers)
      captures.begin()
      reports.repeat()
      ready.resolve()
    },
    VM({ vm }) {
      connections.saw(vm.revision)
      roster.setDesired(vm)
    },
    CACHE: ({ cache }) => pins.setDesired(cache),
    DIAL: (dial) => tunnels.open(dial),
    PING: () => undefined,
  }

  return {
    name,
    ready: ready.promise,
    failed: failed.promise,
    async stop() {
      await Promise.all([heartbeat.stop(), stream.stop(), tunnels.stop()])
      await measurements.stop()
      await Promise.all([pins.stop(), peerServer?.stop()])
      await roster.stop()
      await captures.stop()
      await images.arrivals.stop()
      await reports.stop()
      await driver.close()
      handles.close()
    },
  }
}

/** Reports the node itself: its capacity, its images and the ports in use. */
function createNodeReport(
  { driver, version, folder, log, ...options }: AgentOptions,
  { connection, credentials }: Connections,
  { images, pins, peerServer }: NodeImages,
  roster: Roster,
) {
  const capacity = createCapacity({ options: options.capacity ?? {}, driver, version, folder, log })
  const hostChecks = createHostChecks(options.checks ?? [], folder)
  const reporter = createNodeReporter(connection)
  const send = async (signal: AbortSignal): Promise<void> => {
    const { apiUrl } = connection
    const imageSpace = images.space()
    const cache = {
      cache: pins.report(),
      ...(imageSpace && { imageSpace }),
      ...(peerServer && { peerPort: peerServer.port }),
    }
    const checks = await hostChecks()
    const body = await capacity.report({ apiUrl, images: images.names(), checks, cache, ownPorts: roster.ports() })
    const answer = await reporter.report(body, signal)
    if (answer?.peerSecrets) peerServer?.trust(answer.peerSecrets, credentials())
  }
  return {
    send,
    /** Sends a whole report, because the server may know nothing of this node yet. */
    async sendAll(signal: AbortSignal): Promise<void> {
      capacity.moved()
      reporter.forget()
      await send(signal)
    },
  }
}
