// Runs one node for `svc3 agent`. VMs outlive the process; the next one adopts them.
import path from 'node:path'
import { type Agent, startAgent } from '../agent/agent.ts'
import { NoAddress } from '../agent/host/capacity.ts'
import { IdentityError } from '../agent/link/identity.ts'
import type { Architecture } from '../api/architecture.ts'
import { ApiError } from '../api/errors.ts'
import { Failure, isCommandError } from '../cli/line/usage.ts'
import type { Trust } from '../client/tls.ts'
import { ConnectionError } from '../client/transport.ts'
import { version } from '../control-plane/version.ts'
import type { Driver } from '../drivers/driver.ts'
import { type DriverName, openDriver } from '../drivers/index.ts'
import { watchEventLoop } from '../platform/event-loop.ts'
import { LockedError } from '../platform/lock-file.ts'
import { createLog, type Log } from '../platform/log.ts'
import { notifySupervisor } from '../platform/notify.ts'
import { lookAfterLog } from '../platform/own-log.ts'
import {
  type AgentSettings,
  AgentSettingsError,
  agentSettingsFile,
  appleNetwork,
  readAgentSettings,
} from './agent-settings.ts'
import { remembered } from './remembered.ts'
import type { Simulation } from './simulate.ts'

export type AgentNetwork = 'sealed' | 'user'

export interface RunAgentOptions {
  /** None: the one that the node joined by. */
  readonly apiUrls: readonly string[]
  /** Absolute path of the folder that holds the identity of the node and its VMs. */
  readonly dataDir: string
  readonly imageDir: string
  readonly name: string
  readonly driver: DriverName
  readonly architecture: Architecture | undefined
  readonly ip: string | undefined
  readonly cpu: number | undefined
  readonly memoryGib: number | undefined
  readonly maxVms: number | undefined
  /** What copies of images may take of the disk. */
  readonly imageQuotaBytes: number | undefined
  /** Where content is served to other nodes; undefined: nowhere. */
  readonly peerPort: number | undefined
  /** The node gets another key, and the old one is refused. */
  readonly renewKey: boolean
  /** Removes VMs that the first HELLO does not list, whatever the server's data. */
  readonly removeUnknown: boolean
  /** The node's own configuration; undefined: the one in the data folder, if there is one. */
  readonly configFile: string | undefined
  /** Of guests; the safer one of this host when undefined. */
  readonly network: AgentNetwork | undefined
  readonly simulation: Simulation
  /** Asked when the node has to join. */
  readonly joinToken: (() => Promise<string>) | undefined
  /** Where that comes from, for messages. */
  readonly joinSource: string | undefined
  /** Called when the node has joined: a token that was left for it is not needed any more. */
  readonly joined?: (() => Promise<void>) | undefined
  /** Of the string that the host joins by: where servers are when no address was given, and by which key they are known. */
  readonly joinUrls: readonly string[]
  readonly pin: string | undefined
  /** How the certificates of these servers are judged. `pin`: a key that is good though nobody vouches for it. */
  readonly trust: (apiUrls: readonly string[], pin?: string) => Trust | undefined
}

/** Returns the exit code, once the agent has stopped. */
export async function runAgent(options: RunAgentOptions): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort())
  process.on('SIGHUP', () => process.stdin.isTTY && stopping.abort())

  const known = await remembered(options.dataDir)
  const apiUrls = options.apiUrls.length > 0 ? options.apiUrls : [...new Set([...options.joinUrls, ...known.apiUrls])]
  const pin = options.pin ?? (options.apiUrls.length > 0 ? undefined : known.pin)
  if (apiUrls.length === 0) throw await noAddress(options)
  const log = createLog(process.env.SVC3_DEBUG ? 'debug' : 'info')
  using _watch = watchEventLoop((heldMs) =>
    log.warn('the event loop was held: nothing was reported', { durationMs: heldMs }),
  )
  let agent: Agent
  try {
    agent = await start({ ...options, pin }, apiUrls, await settingsOf(options), log, stopping.signal)
  } catch (error) {
    if (stopping.signal.aborted) return 0
    if (isCommandError(error)) throw error
    throw new Failure(...explain(error, options))
  }
  process.stdout.write(
    `svc3 agent ${agent.name} started for ${apiUrls.join(', ')}. Press Ctrl-C to stop; VMs keep running\n`,
  )
  const stopLog = lookAfterLog(process.env.SVC3_LOG_FILE)
  // Up, whether or not a server answers: VMs are being managed.
  await notifySupervisor('ready', `node ${agent.name}`)
  void agent.ready.then(async () => {
    process.stdout.write(`svc3 agent ${agent.name} connected\n`)
    await options.joined?.().catch(() => undefined)
  })
  const failure = await Promise.race([aborted(stopping.signal), agent.failed])
  await notifySupervisor('stopping', 'VMs keep running')
  await agent.stop()
  await stopLog()
  if (failure) throw new Failure(...explain(failure, options))
  process.stdout.write('svc3 agent stopped; VMs keep running\n')
  return 0
}

/** Only a join string has addresses in it: where something else was given, that is what is wrong. */
async function noAddress({ joinToken, joinSource }: RunAgentOptions): Promise<Failure> {
  await joinToken?.()
  return joinSource === undefined
    ? new Failure('No server address known', 'Specify --api-url URL; the agent remembers it')
    : new Failure(`${joinSource} is not a join token`, 'Create one with svc3 node join-token')
}

const settingsOf = ({ configFile, dataDir }: RunAgentOptions): Promise<AgentSettings> =>
  readAgentSettings(configFile ?? path.join(dataDir, agentSettingsFile), configFile !== undefined)

function start(
  options: RunAgentOptions,
  apiUrls: readonly string[],
  settings: AgentSettings,
  log: Log,
  signal: AbortSignal,
): Promise<Agent> {
  const { dataDir, imageDir, name, architecture, ip, cpu, memoryGib, maxVms, joinToken, trust } = options
  const memoryMiB = memoryGib === undefined ? undefined : Math.round(memoryGib * 1024)
  return startAgent(
    {
      apiUrls,
      folder: dataDir,
      imageFolder: imageDir,
      name,
      driver: driverFor(options, settings),
      version,
      capacity: { architecture, ip, cpu, memoryMiB, maxVms },
      imageQuotaBytes: options.imageQuotaBytes,
      peerPort: options.peerPort,
      joinToken,
      renewKey: options.renewKey,
      removeUnknown: options.removeUnknown,
      log,
      trust: trust(apiUrls, options.pin),
      pin: options.pin,
    },
    signal,
  )
}

function driverFor(options: RunAgentOptions, { macos, apple }: AgentSettings): Driver {
  const { driver, architecture, network, simulation, dataDir } = options
  const settings = { dataDir, architecture, network, macos, simulation }
  return openDriver(driver, { ...settings, appleNetwork: () => appleNetwork(network, apple) })
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))

const systemFaults: Readonly<Record<string, string>> = {
  EACCES: 'Choose your own folder with --data DIR, or run this as its owner',
  EROFS: 'The file system is read-only; choose another folder with --data DIR',
  ENOSPC: 'No disk space left; free some, or choose another folder with --data DIR',
  ENOTDIR: 'Not a folder; choose another with --data DIR',
  EEXIST: 'Not a folder; choose another with --data DIR',
}

function explain(error: unknown, { dataDir, name }: RunAgentOptions): [what: string, next: string] {
  if (error instanceof LockedError)
    return [
      `An agent is already running on ${dataDir} (process ${error.pid})`,
      'Stop it, or choose another folder with --data DIR',
    ]
  if (error instanceof IdentityError || error instanceof AgentSettingsError)
    return [error.message, 'Nothing was started']
  if (error instanceof NoAddress) return [error.message, 'Specify one with --ip ADDRESS']
  if (error instanceof ConnectionError) return [error.message, error.hint]
  if (error instanceof ApiError)
    return [
      // Without a request the cluster was not asked.
      error.requestId === undefined ? error.message : `The cluster refuses node ${name}: ${error.message}`,
      error.options.hint ?? 'Create a join token with svc3 node join-token and pass it with --join-token-file FILE',
    ]
  const { code = '', message } = error as NodeJS.ErrnoException
  const next = systemFaults[code]
  if (next !== undefined) return [`Cannot use ${dataDir} (${code})`, next]
  if (process.env.SVC3_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  return [`The agent did not start: ${message}`, 'Run it with SVC3_DEBUG=1 for details']
}
