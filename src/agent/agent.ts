// The agent of a node: joins, keeps the stream open, gives every VM a worker, and reports to the server how things are.
import path from 'node:path'
import { type AgentMessage, findPeers, getBlob, noteBootOrder, reportVms } from '../api/nodes/agent.ts'
import { getVmRegistry } from '../api/nodes/captures.ts'
import type { Trust } from '../client/tls.ts'
import type { Driver } from '../drivers/driver.ts'
import { systemClock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { reasonOf } from '../platform/reason.ts'
import { retry, retryPolicies } from '../platform/retry.ts'
import { createCaptures } from './captures/captures.ts'
import { createPacker, createPretendPacker } from './captures/pack.ts'
import { captureServer } from './captures/server.ts'
import { openCaptureStates } from './captures/states.ts'
import { type CapacityOptions, createCapacity, NoAddress } from './host/capacity.ts'
import { holdFolder } from './host/hold-folder.ts'
import { socketFolderOf } from './images/arrivals.ts'
import { Pins } from './images/cache-pins.ts'
import type { OpenBlob } from './images/content-source.ts'
import { openHolders } from './images/holders.ts'
import { openImages, pretendImages } from './images/images.ts'
import { startPeerServer } from './images/peer-server.ts'
import { createPeers, type PeersOptions } from './images/peers.ts'
import { type Recipe, recipes } from './images/recipes.ts'
import { createAddresses } from './link/addresses.ts'
import { type AgentConnection, createConnection, isRetriable } from './link/connection.ts'
import { startHeartbeat } from './link/heartbeat.ts'
import { openNodeIdentity } from './link/identity.ts'
import { createNodeReporter } from './link/node-reporter.ts'
import { connectionProblem } from './link/outage-log.ts'
import type { NodeCredentials } from './link/peer-tls.ts'
import { Reports } from './link/reports.ts'
import { ServerStream } from './link/stream.ts'
import { startMeasurements } from './measurements/measurements.ts'
import { type Durability, openHandles } from './state/handles.ts'
import { openLastSeenStore } from './state/last-seen-store.ts'
import { sshGreets } from './vms/boot-watch.ts'
import { growGuest } from './vms/grow.ts'
import { createRoster } from './vms/roster.ts'
import { createTunnels } from './vms/tunnels.ts'
import type { Tools } from './vms/work.ts'

export interface AgentOptions {
  /** Of one service; the next one is tried when one does not answer. */
  readonly apiUrls: readonly string[]
  /** Identity and VMs of this node. */
  readonly folder: string
  /** May be shared by agents of one host. */
  readonly imageFolder: string
  readonly name: string
  readonly driver: Driver
  readonly version: string
  readonly capacity?: CapacityOptions
  /** What copies of images may take; four fifths of what is free when left out. */
  readonly imageQuotaBytes?: number | undefined
  /** Serves content to other nodes there, and takes it from them; 0 takes a free port. */
  readonly peerPort?: number | undefined
  /** Tests only: how long a peer may say nothing. */
  readonly peerSilenceMs?: number
  /** Asked when the node is not part of the cluster yet, or no more. */
  readonly joinToken?: (() => Promise<string>) | undefined
  /** A node that has joined gets another key first. */
  readonly renewKey?: boolean
  /** VMs that are not in the first list of the server are removed, also those that were kept. */
  readonly removeUnknown?: boolean
  /** Tests only. */
  readonly recipes?: Readonly<Record<string, Recipe>>
  readonly durability?: Durability
  readonly graceSeconds?: number
  readonly stopTimeoutMs?: number
  readonly log: Log
  readonly trust?: Trust | undefined
  /** By which the servers are known; kept for the next start. */
  readonly pin?: string | undefined
}

export interface Agent {
  readonly name: string
  /** Resolves when the desired state has come from the server for the first time. */
  readonly ready: Promise<void>
  /** Resolves when the agent cannot go on: the cluster does not know this node any more, or it has no address. */
  readonly failed: Promise<Error>
  /** Ends the agent. VMs go on. */
  stop(): Promise<void>
}

const defaultGraceSeconds = 30
const defaultStopTimeoutMs = 5_000
const firstHeartbeatSeconds = 10
const maxRefusals = 5
/** More than come unasked for: those may take all the time that there is. */
const chunksAtOnce = 16

/** Throws when the folder cannot be used, or the cluster does not take the node. Waits for a server that is not there. */
export async function startAgent(options: AgentOptions, signal = new AbortController().signal): Promise<Agent> {
  const release = await holdFolder(options.folder)
  try {
    const identity = await openNodeIdentity(options.folder, options.name, options.pin)
    const addresses = createAddresses(options.apiUrls, options.name)
    const connection = createConnection({ ...options, addresses, identity })
    await joinPatiently(connection, options.log, signal)
    // Its own connections: large content must not hold up reports, for which the server would take the node for lost.
    // It never joins by itself; that is for the other one.
    const content = createConnection({ ...options, addresses, joinToken: undefined, identity })
    // A chunk keeps its connection busy for as long as it takes on a slow network: neither a save nor a question about the
    // next chunk is to wait for that, nor a chunk that a guest waits for.
    const chunks = createConnection({
      ...options,
      addresses,
      joinToken: undefined,
      identity,
      maxSockets: chunksAtOnce,
    })
    const learn = (urls: readonly string[]): void => {
      if (!addresses.learn(connection.apiUrl, urls)) return
      identity.remember(addresses.all).catch((error: unknown) => {
        options.log.warn('failed to save the server addresses', { folder: options.folder, problem: reasonOf(error) })
      })
    }
    const agent = await runAgent(options, { connection, content, chunks }, learn, () => identity.credentials)
    return { ...agent, stop: () => agent.stop().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

const joinPatiently = (connection: AgentConnection, log: Log, signal: AbortSignal): Promise<void> =>
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
}

/** By digest, as `openImages` takes them. */
const blobsOf =
  (chunks: AgentConnection): OpenBlob =>
  async (digest, signal) => {
    try {
      return (await chunks.open({ ...getBlob, path: getBlob.path.replace('{digest}', digest) }, signal)).body
    } catch (error) {
      if (isRetriable(error)) chunks.turn()
      throw error
    }
  }

const peersOf =
  (content: AgentConnection): PeersOptions['find'] =>
  async (wanted, signal) =>
    (await content.call(findPeers, { body: wanted }, signal)).peers

async function runAgent(
  options: AgentOptions,
  { connection, content, chunks }: Connections,
  learn: (urls: readonly string[]) => void,
  credentials: () => NodeCredentials | undefined,
): Promise<Agent> {
  const { name, driver, folder, imageFolder, version, log } = options
  const { isSimulation = false } = driver
  const durability = options.durability ?? (isSimulation ? 'written' : 'synced')
  const ready = Promise.withResolvers<void>()
  const failed = Promise.withResolvers<Error>()

  const reports = new Reports({
    send: async (vms, signal) => {
      const { figures } = images
      const body = { vms: [...vms], ...(figures && { images: { ...figures } }) }
      return (await connection.call(reportVms, { body }, signal)).unknown
    },
    // A hint, no more: what should be here is for a HELLO to say.
    unknown: (uid) => {
      const worker = roster.get(uid)
      if (worker && !worker.isSilent) stream.renew()
    },
    log,
  })
  const nodeChanged = (): void => heartbeat.nudge()
  const nodeImages = await openImages({
    folder: isSimulation ? folder : imageFolder,
    recipes: isSimulation ? {} : (options.recipes ?? recipes),
    openBlob: blobsOf(chunks),
    bootOrder: async (digest, read, signal) => {
      const body = { content: digest, ...(read && { chunks: [...read] }) }
      return (await content.call(noteBootOrder, { body }, signal)).chunks
    },
    askLogin: (vm, signal) => content.call(getVmRegistry, { params: { vm } }, signal),
    peers:
      options.peerPort === undefined
        ? undefined
        : createPeers({ find: peersOf(content), credentials, log, silenceMs: options.peerSilenceMs }),
    ...(!isSimulation && { holders: await openHolders(imageFolder, folder, driver.name) }),
    quotaBytes: options.imageQuotaBytes,
    socketFolder: socketFolderOf(folder),
    changed: nodeChanged,
    log,
  })
  const images = isSimulation ? pretendImages() : nodeImages
  const captures = createCaptures({
    node: name,
    driver,
    images,
    packer: isSimulation
      ? createPretendPacker(nodeImages.content)
      : createPacker(path.join(folder, 'packed'), nodeImages.content),
    states: openCaptureStates(path.join(folder, 'captures')),
    server: captureServer(content),
    changed: (uid) => roster.get(uid)?.wake(),
    log,
  })
  const pins = new Pins({ images, changed: nodeChanged, log })
  const peerServer =
    options.peerPort === undefined
      ? undefined
      : await startPeerServer({ port: options.peerPort, store: images.store, fetches: images.fetches, log })
  const tools: Tools = {
    driver,
    handles: openHandles(folder, driver.name, durability),
    images,
    captures,
    isoFolder: path.join(imageFolder, 'isos'),
    graceSeconds: options.graceSeconds ?? defaultGraceSeconds,
    grow: growGuest,
    greets: isSimulation ? undefined : sshGreets,
  }
  const roster = createRoster({
    context: {
      node: name,
      tools,
      reports,
      log,
      stopTimeoutMs: options.stopTimeoutMs ?? defaultStopTimeoutMs,
      nodeChanged,
    },
    lastSeen: await openLastSeenStore(folder, durability, log),
    nodeUid: () => connection.nodeUid,
    removeUnknown: options.removeUnknown ?? false,
    log,
  })

  const capacity = createCapacity({ options: options.capacity ?? {}, driver, version, folder, log })
  const reporter = createNodeReporter(connection)
  const reportSelf = async (signal: AbortSignal): Promise<void> => {
    const { apiUrl } = connection
    const imageSpace = images.space()
    const cache = {
      cache: pins.report(),
      ...(imageSpace && { imageSpace }),
      ...(peerServer && { peerPort: peerServer.port }),
    }
    const body = await capacity.report({ apiUrl, images: images.names(), cache, ownPorts: roster.ports() })
    const answer = await reporter.report(body, signal)
    if (answer?.peerSecrets) peerServer?.trust(answer.peerSecrets, credentials())
  }

  const measurements = await startMeasurements({
    folder,
    vms: () => roster.all().map(({ handle, desired }) => ({ handle, cores: desired?.cpu ?? 1 })),
    usage: driver.measuring?.usage,
    images: () => images.lookups(),
    clock: systemClock,
    log,
  })
  const tunnels = createTunnels({
    connect: connection.dial,
    find: (uid) => {
      const worker = roster.get(uid)
      if (!worker?.desired) return undefined
      const { handle, desired } = worker
      const { ports } = driver
      return {
        desired,
        logFile: () => driver.console?.log(handle),
        ...(ports && { holds: (port, ip) => ports.holds(handle, port, ip) }),
      }
    },
    measured: (uid, minutes) =>
      JSON.stringify(measurements.read(uid === '' ? undefined : (roster.get(uid)?.handle.uid ?? uid), minutes)),
    log,
  })

  /** What comes of a message may be reported to another server than the one that sent it. */
  const saw = (revision: string | undefined): void => {
    for (const each of [connection, content, chunks]) each.saw(revision)
  }
  const received: { readonly [T in AgentMessage['type']]: (message: Extract<AgentMessage, { type: T }>) => void } = {
    HELLO(hello) {
      saw(hello.store.revision)
      roster.hello(hello)
      pins.setDesired(hello.cache)
      heartbeat.every(hello.heartbeatSeconds)
      if (hello.servers) learn(hello.servers)
      captures.begin()
      reports.repeat()
      ready.resolve()
    },
    VM({ vm }) {
      saw(vm.revision)
      roster.setDesired(vm)
    },
    CACHE: ({ cache }) => pins.setDesired(cache),
    DIAL: (dial) => tunnels.open(dial),
    PING: () => undefined,
  }

  await captures.adopt()
  const count = await roster.adopt()
  if (count > 0) log.info('found VMs of an earlier agent', { node: name, count })

  const stream = new ServerStream({
    connection,
    prepare: async (signal) => {
      capacity.moved()
      reporter.forget()
      await reportSelf(signal).catch((error: unknown) => {
        // No other try would find one.
        if (error instanceof NoAddress) failed.resolve(error)
        throw error
      })
    },
    received: (message) => (received[message.type] as (message: AgentMessage) => void)(message),
    refused: (error, times) => times >= maxRefusals && failed.resolve(error),
    log,
  })
  const heartbeat = startHeartbeat({
    firstSeconds: firstHeartbeatSeconds,
    check: () => stream.check(heartbeat.everyMs),
    beat: async (signal) => {
      if (stream.isOpen) await reportSelf(signal)
    },
    failed: (error) => log.debug('a heartbeat failed', { node: name, problem: reasonOf(error) }),
  })

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
      tools.handles.close()
    },
  }
}
