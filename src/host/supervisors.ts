// The supervisors of services: systemd and launchd. Each turns a definition into files, and controls the service.
import { type ExecError, exec, lastLines } from '../platform/exec.ts'
import { retry } from '../platform/retry.ts'
import { daemonFolder, labels, launchdFiles, logFile, logFolder, screenRuleLabel, unloadRule } from './launchd.ts'
import { type ServiceDefinition, type ServiceFile, type ServiceKind, serviceNames } from './service.ts'
import { systemdFiles } from './systemd.ts'

/** Runs a program of the host and returns its output. */
export type RunProgram = (program: string, ...args: readonly string[]) => Promise<string>

export const runProgram: RunProgram = async (program, ...args) =>
  // `systemctl restart` returns when the service is ready, which may take TimeoutStartSec of the unit.
  (await exec(program, args, { timeoutMs: 330_000 })).stdout

export interface ServiceState {
  readonly state: 'running' | 'starting' | 'stopped' | 'failed' | 'not installed'
  readonly pid?: number
  /** The status text of the service. */
  readonly text?: string
}

export interface Supervisor {
  readonly name: 'systemd' | 'launchd'
  files(service: ServiceDefinition): readonly ServiceFile[]
  /** Folders besides the data folder, accessible only to the service's user. */
  folders(kind: ServiceKind): readonly string[]
  /** Starts or restarts the service with its current definition, and returns when it is ready. VMs keep running. */
  start(kind: ServiceKind, run: RunProgram): Promise<void>
  /** Stops the service, also for the next boot. VMs keep running. */
  stop(kind: ServiceKind, run: RunProgram): Promise<void>
  /** Called after the definition was deleted. */
  removed(run: RunProgram): Promise<void>
  state(kind: ServiceKind, run: RunProgram): Promise<ServiceState>
  /** The last lines of the log, which may say why the service does not run. */
  lastLog(kind: ServiceKind, run: RunProgram): Promise<string>
  /** The command that shows the whole log. */
  logCommand(kind: ServiceKind): string
}

const systemdStates: Readonly<Record<string, ServiceState['state']>> = {
  active: 'running',
  reloading: 'running',
  activating: 'starting',
  deactivating: 'stopped',
  inactive: 'stopped',
  failed: 'failed',
}

const systemd: Supervisor = {
  name: 'systemd',
  files: systemdFiles,
  // Logs go to the journal.
  folders: () => [],
  async start(kind, run) {
    await run('systemctl', 'daemon-reload')
    await run('systemctl', 'enable', serviceNames[kind])
    await run('systemctl', 'restart', serviceNames[kind])
  },
  async stop(kind, run) {
    await run('systemctl', 'disable', '--now', serviceNames[kind])
  },
  async removed(run) {
    await run('systemctl', 'daemon-reload')
  },
  async state(kind, run) {
    const properties = '--property=LoadState,ActiveState,MainPID,StatusText'
    const text = await run('systemctl', 'show', serviceNames[kind], properties)
    const fields = new Map(
      text.split('\n').map((line) => {
        const at = line.indexOf('=')
        return [line.slice(0, at), line.slice(at + 1)]
      }),
    )
    if (fields.get('LoadState') !== 'loaded') return { state: 'not installed' }
    const pid = Number(fields.get('MainPID') ?? 0)
    const status = fields.get('StatusText') ?? ''
    return {
      state: systemdStates[fields.get('ActiveState') ?? ''] ?? 'stopped',
      ...(pid > 0 && { pid }),
      ...(status !== '' && { text: status }),
    }
  },
  lastLog: (kind, run) => run('journalctl', '-u', serviceNames[kind], '-n', '10', '-o', 'cat', '--no-pager'),
  logCommand: (kind) => `journalctl -u ${serviceNames[kind]}`,
}

const target = (kind: ServiceKind): string => `system/${labels[kind]}`
/** launchd refuses to load a service again until it has finished unloading it. */
const unloadMs = 10_000
const startMs = 60_000

async function load(label: string, run: RunProgram): Promise<void> {
  await run('launchctl', 'bootout', `system/${label}`).catch(() => undefined)
  await run('launchctl', 'enable', `system/${label}`)
  await until(unloadMs, () => run('launchctl', 'bootstrap', 'system', `${daemonFolder}/${label}.plist`))
}

const launchd: Supervisor = {
  name: 'launchd',
  files: launchdFiles,
  folders: (kind) => [logFolder(kind)],
  async start(kind, run) {
    // Without the rule, VMs have no screens, and everything else works.
    if (kind === 'agent') await load(screenRuleLabel, run).catch(() => undefined)
    await load(labels[kind], run)
    await until(startMs, async () => {
      if ((await this.state(kind, run)).state !== 'running') throw new Error(`${labels[kind]} is not running`)
    })
  },
  async stop(kind, run) {
    await run('launchctl', 'bootout', target(kind)).catch(() => undefined)
    await run('launchctl', 'disable', target(kind))
    if (kind !== 'agent') return
    await run('launchctl', 'bootout', `system/${screenRuleLabel}`).catch(() => undefined)
    await run('/bin/sh', '-c', unloadRule).catch(() => undefined)
  },
  removed: async () => undefined,
  async state(kind, run) {
    const text = await run('launchctl', 'print', target(kind)).catch((error: ExecError) => {
      // 113: no such service.
      if (error.exitCode === 113) return undefined
      throw error
    })
    if (text === undefined) return { state: 'not installed' }
    const pid = Number(/^[ \t]*pid = (\d+)$/m.exec(text)?.[1] ?? 0)
    const lastExit = Number(/^[ \t]*last exit code = (\d+)/m.exec(text)?.[1] ?? 0)
    if (/^[ \t]*state = running$/m.test(text)) return { state: 'running', ...(pid > 0 && { pid }) }
    return lastExit === 0 ? { state: 'stopped' } : { state: 'failed', text: `exit code ${lastExit}` }
  },
  lastLog: async (kind, run) => lastLines(await run('tail', '-n', '10', logFile(kind)), 10),
  logCommand: (kind) => `tail -f ${logFile(kind)}`,
}

const until = (withinMs: number, attempt: () => Promise<unknown>): Promise<unknown> =>
  retry(attempt, {
    policy: { attempts: Infinity, withinMs, firstDelayMs: 500, maxDelayMs: 500 },
    isRetriable: () => true,
  })

export const supervisors: Readonly<Partial<Record<NodeJS.Platform, Supervisor>>> = { linux: systemd, darwin: launchd }
