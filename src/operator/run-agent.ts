// Runs one node for `svc3 agent`. VMs outlive the process; the next one adopts them.
import { type Agent, startAgent } from '../agent/agent.ts'
import { NoAddress } from '../agent/host/capacity.ts'
import { IdentityError } from '../agent/link/identity.ts'
import { ApiError } from '../api/errors.ts'
import { Failure, isCommandError } from '../cli/line/usage.ts'
import { ConnectionError } from '../client/transport.ts'
import { version } from '../control-plane/version.ts'
import type { Driver } from '../drivers/driver.ts'
import { openDriver } from '../drivers/index.ts'
import { isScreenRuleLoaded } from '../host/screen-rule.ts'
import { watchEventLoop } from '../platform/event-loop.ts'
import { LockedError } from '../platform/lock-file.ts'
import { createLog, type Log } from '../platform/log.ts'
import { notifySupervisor } from '../platform/notify.ts'
import { lookAfterLog } from '../platform/own-log.ts'
import type { RunAgentOptions } from './agent-options.ts'
import { type AgentSettings, AgentSettingsError, appleNetwork, readAgentSettings } from './agent-settings.ts'
import { hostChecks } from './host-checks.ts'
import { remembered } from './remembered.ts'

/** Returns the exit code when the agent has stopped. */
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
    log.warn('event loop blocked; nothing was reported', { durationMs: heldMs }),
  )
  let agent: Agent
  try {
    agent = await start({ ...options, pin }, apiUrls, await readAgentSettings(options), log, stopping.signal)
  } catch (error) {
    if (stopping.signal.aborted) return 0
    if (isCommandError(error)) throw error
    throw new Failure(...explain(error, options))
  }
  process.stdout.write(
    `svc3 agent ${agent.name} started for ${apiUrls.join(', ')}. Press Ctrl-C to stop; VMs keep running\n`,
  )
  const stopLog = lookAfterLog(process.env.SVC3_LOG_FILE)
  // The agent is ready even if no server answers yet, because it already manages VMs.
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

/** A join string has addresses: if none is known, the join token was not a join string. */
async function noAddress({ joinToken, joinSource }: RunAgentOptions): Promise<Failure> {
  await joinToken?.()
  return joinSource === undefined
    ? new Failure('No server address known', 'Specify --api-url URL; the agent remembers it')
    : new Failure(`${joinSource} is not a join token`, 'Create one with svc3 node join-token')
}

function start(
  options: RunAgentOptions,
  apiUrls: readonly string[],
  settings: AgentSettings,
  log: Log,
  signal: AbortSignal,
): Promise<Agent> {
  const { dataDir, imageDir, architecture, ip, cpu, memoryGib, maxVms, pin } = options
  const memoryMiB = memoryGib === undefined ? undefined : Math.round(memoryGib * 1024)
  const agent = {
    ...options,
    apiUrls,
    folder: dataDir,
    imageFolder: imageDir,
    driver: driverFor(options, settings),
    version,
    checks: hostChecks(options),
    capacity: { architecture, ip, cpu, memoryMiB, maxVms },
    log,
    trust: options.trust(apiUrls, pin),
  }
  return startAgent(agent, signal)
}

function driverFor(options: RunAgentOptions, { macos, apple }: AgentSettings): Driver {
  const { driver, architecture, network, simulation, dataDir } = options
  const settings = { dataDir, architecture, network, macos, simulation }
  const { screen, directories } = apple ?? {}
  return openDriver(driver, {
    ...settings,
    apple: () => ({ network: appleNetwork(network, apple), screen, isScreenRuleLoaded, directories }),
  })
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })

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
      // The error has no request if the agent raised it itself.
      error.requestId === undefined ? error.message : `The cluster refuses node ${name}: ${error.message}`,
      error.options.hint ?? 'Create a join token with svc3 node join-token and pass it with --join-token-file FILE',
    ]
  const { code = '', message } = error as NodeJS.ErrnoException
  const next = systemFaults[code]
  if (next !== undefined) return [`Cannot use ${dataDir} (${code})`, next]
  if (process.env.SVC3_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  return [`The agent did not start: ${message}`, 'Run it with SVC3_DEBUG=1 for details']
}
