// The agent of a node: joins, keeps the stream open, gives every VM a worker, and tells the server how things are.
import path from 'node:path'
import { type AgentMessage, reportNode, reportVms, type WantedVm } from '../api/agent.ts'
import { backOff, wait } from '../client/retry.ts'
import type { Trust } from '../client/tls.ts'
import type { Driver } from '../drivers/driver.ts'
import type { Log } from '../platform/log.ts'
import { type CapacityOptions, createCapacity } from './capacity.ts'
import { type Connection, createConnection, isPassing } from './connection.ts'
import { growGuest } from './grow.ts'
import { type Durability, openHandles } from './handles.ts'
import { startHeartbeat } from './heartbeat.ts'
import { holdFolder } from './hold-folder.ts'
import { openIdentity } from './identity.ts'
import { openImages, pretendImages } from './images.ts'
import { reasonOf } from './messages.ts'
import { type Recipe, recipes } from './recipes.ts'
import { createReports } from './reports.ts'
import { portsOf } from './spec.ts'
import { openStream } from './stream.ts'
import { createTunnels } from './tunnels.ts'
import { type VmContext, VmWorker } from './vm.ts'
import type { Tools } from './work.ts'

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
  /** Asked when the node is not part of the cluster yet, or no more. */
  readonly joinToken?: (() => Promise<string>) | undefined
  /** Tests only. */
  readonly recipes?: Readonly<Record<string, Recipe>>
  readonly durability?: Durability
  readonly graceSeconds?: number
  readonly stopPatienceMs?: number
  readonly log: Log
  readonly trust?: Trust | undefined
}

export interface Agent {
  readonly name: string
  /** Resolves when the server has said for the first time what it wants. */
  readonly ready: Promise<void>
  /** Resolves when the agent cannot go on: the cluster does not know this node any more. */
  readonly failed: Promise<Error>
  /** Ends the agent. VMs go on. */
  stop(): Promise<void>
}

const defaultGraceSeconds = 30
const defaultStopPatienceMs = 5_000
const firstHeartbeatSeconds = 10
const maxRefusals = 5
const joinRetry = { attempts: Infinity, firstDelayMs: 200, maxDelayMs: 5_000, maxRetryAfterMs: 30_000 }

/** Throws when the folder cannot be used, or the cluster does not take the node. Waits for a server that is not there. */
export async function startAgent(options: AgentOptions, signal = new AbortController().signal): Promise<Agent> {
  const release = await holdFolder(options.folder)
  try {
    const identity = await openIdentity(options.folder, options.name)
    const connection = createConnection({ ...options, identity })
    await joinPatiently(connection, options.log, signal)
    const agent = await runAgent(options, connection)
    return { ...agent, stop: () => agent.stop().finally(release) }
  } catch (error) {
    await release()
    throw error
  }
}

async function joinPatiently(connection: Connection, log: Log, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await connection.join(signal)
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error
      log.warn('cannot join the cluster yet', { address: connection.apiUrl, problem: reasonOf(error), attempt })
      connection.turn()
      await wait(backOff(Math.min(attempt, 10), joinRetry, Math.random), signal)
    }
  }
}

async function runAgent(options: AgentOptions, connection: Connection): Promise<Agent> {
  const { name, driver, folder, imageFolder, version, log } = options
  const workers = new Map<string, VmWorker>()
  const ready = Promise.withResolvers<void>()
  const failed = Promise.withResolvers<Error>()
  let hasHello = false

  const reports = createReports({
    send: async (vms, signal) => (await connection.call(reportVms, { body: { vms: [...vms] } }, signal)).unknown,
    unknown: (uid) => hasHello && workers.get(uid)?.discard(),
    log,
  })
  const nodeChanged = (): void => heartbeat.nudge()
  const images =
    driver.name === 'simulated'
      ? pretendImages()
      : await openImages({ folder: imageFolder, recipes: options.recipes ?? recipes, added: nodeChanged, log })
  const tools: Tools = {
    driver,
    handles: openHandles(folder, driver.name, options.durability ?? 'synced'),
    images,
    isoFolder: path.join(imageFolder, 'isos'),
    graceSeconds: options.graceSeconds ?? defaultGraceSeconds,
    grow: growGuest,
  }
  const context: VmContext = {
    node: name,
    tools,
    reports,
    log,
    stopPatienceMs: options.stopPatienceMs ?? defaultStopPatienceMs,
    nodeChanged,
    ended: (uid) => workers.delete(uid),
  }

  const capacity = createCapacity({ options: options.capacity ?? {}, driver, version, folder })
  const reportSelf = async (signal: AbortSignal): Promise<void> => {
    const ownPorts = new Set([...workers.values()].flatMap(({ wish }) => (wish ? portsOf(wish) : [])))
    const { apiUrl } = connection
    const body = await capacity.report({ apiUrl, images: images.names(), ownPorts }, signal)
    await connection.call(reportNode, { body }, signal)
  }

  const want = (vm: WantedVm): void => {
    try {
      const worker = workers.get(vm.uid) ?? new VmWorker(context, vm.uid, 'new')
      workers.set(vm.uid, worker)
      worker.want(vm)
    } catch (error) {
      log.error('the server wants a VM that cannot be', { name: vm.name, namespace: vm.namespace }, error)
    }
  }
  const tunnels = createTunnels({
    connect: connection.dial,
    find: (uid) => {
      const worker = workers.get(uid)
      return worker?.wish && { wish: worker.wish, logFile: driver.console?.log(worker.handle) }
    },
    log,
  })

  const received: { readonly [T in AgentMessage['type']]: (message: Extract<AgentMessage, { type: T }>) => void } = {
    HELLO({ vms, kept, heartbeatSeconds }) {
      heartbeat.every(heartbeatSeconds)
      hasHello = true
      const wanted = new Set([...vms.map(({ uid }) => uid), ...kept])
      for (const [uid, worker] of workers) {
        if (wanted.has(uid)) continue
        log.warn('a VM that the server does not know is removed', { name: uid })
        worker.discard()
      }
      for (const vm of vms) want(vm)
      reports.repeat()
      ready.resolve()
    },
    VM: ({ vm }) => want(vm),
    DIAL: (dial) => tunnels.open(dial),
    PING: () => undefined,
  }

  for (const { uid, record } of await tools.handles.list()) {
    const worker = new VmWorker(context, uid, record)
    workers.set(uid, worker)
    worker.wake()
  }
  if (workers.size > 0) log.info('found VMs of an earlier agent', { node: name, count: workers.size })

  const stream = openStream({
    connection,
    prepare: (signal) => {
      capacity.moved()
      return reportSelf(signal)
    },
    received: (message) => (received[message.type] as (message: AgentMessage) => void)(message),
    refused: (error, times) => times >= maxRefusals && failed.resolve(error),
    log,
  })
  const heartbeat = startHeartbeat({
    firstSeconds: firstHeartbeatSeconds,
    beat: async (signal) => {
      stream.check(heartbeat.everyMs)
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
      await Promise.all([...workers.values()].map((worker) => worker.stop()))
      await reports.stop()
      await driver.close()
    },
  }
}
