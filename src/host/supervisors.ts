// What runs services on a host: systemd or launchd. Each turns a definition into files, and starts, stops and looks.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecError, exec, lastLines } from '../platform/exec.ts'
import { daemonFolder, labels, launchdFiles, logFile, logFolder } from './launchd.ts'
import { type ServiceDefinition, type ServiceFile, type ServiceKind, serviceNames } from './service.ts'
import { systemdFiles } from './systemd.ts'

/** Runs a program of the host; what it printed. */
export type RunProgram = (program: string, ...args: readonly string[]) => Promise<string>

export const runProgram: RunProgram = async (program, ...args) =>
  // Until a service that takes its time is up.
  (await exec(program, args, { timeoutMs: 330_000 })).stdout

export interface ServiceState {
  readonly state: 'running' | 'starting' | 'stopped' | 'failed' | 'not installed'
  readonly pid?: number
  /** As the service itself says it. */
  readonly text?: string
}

export interface Supervisor {
  readonly name: 'systemd' | 'launchd'
  files(service: ServiceDefinition): readonly ServiceFile[]
  /** Besides the data folder, for the service's user alone. */
  folders(kind: ServiceKind): readonly string[]
  /** Starts it with the definition that is there now, or again if it runs; returns when it is up. VMs run on. */
  start(kind: ServiceKind, run: RunProgram): Promise<void>
  /** Ends it, and it does not come back with the host. VMs run on. */
  stop(kind: ServiceKind, run: RunProgram): Promise<void>
  /** Its definition is gone from the disk. */
  forgotten(run: RunProgram): Promise<void>
  state(kind: ServiceKind, run: RunProgram): Promise<ServiceState>
  /** The last that it said, for somebody who wonders why it does not run. */
  lastWords(kind: ServiceKind, run: RunProgram): Promise<string>
  /** The command that shows all of it. */
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
  // The journal keeps what it writes.
  folders: () => [],
  async start(kind, run) {
    await run('systemctl', 'daemon-reload')
    await run('systemctl', 'enable', serviceNames[kind])
    await run('systemctl', 'restart', serviceNames[kind])
  },
  async stop(kind, run) {
    await run('systemctl', 'disable', '--now', serviceNames[kind])
  },
  async forgotten(run) {
    await run('systemctl', 'daemon-reload')
  },
  async state(kind, run) {
    const properties = '--property=LoadState,ActiveState,MainPID,StatusText'
    const text = await run('systemctl', 'show', serviceNames[kind], properties)
    const shown = new Map(
      text.split('\n').map((line) => {
        const at = line.indexOf('=')
        return [line.slice(0, at), line.slice(at + 1)]
      }),
    )
    if (shown.get('LoadState') !== 'loaded') return { state: 'not installed' }
    const pid = Number(shown.get('MainPID') ?? 0)
    const said = shown.get('StatusText') ?? ''
    return {
      state: systemdStates[shown.get('ActiveState') ?? ''] ?? 'stopped',
      ...(pid > 0 && { pid }),
      ...(said !== '' && { text: said }),
    }
  },
  lastWords: (kind, run) => run('journalctl', '-u', serviceNames[kind], '-n', '10', '-o', 'cat', '--no-pager'),
  logCommand: (kind) => `journalctl -u ${serviceNames[kind]}`,
}

const target = (kind: ServiceKind): string => `system/${labels[kind]}`
/** launchd forgets a service some time after it was told to. */
const forgettingMs = 10_000
const comingUpMs = 60_000

const launchd: Supervisor = {
  name: 'launchd',
  files: launchdFiles,
  folders: (kind) => [logFolder(kind)],
  async start(kind, run) {
    await run('launchctl', 'bootout', target(kind)).catch(() => undefined)
    await run('launchctl', 'enable', target(kind))
    await until(forgettingMs, () => run('launchctl', 'bootstrap', 'system', `${daemonFolder}/${labels[kind]}.plist`))
    await until(comingUpMs, async () => {
      if ((await this.state(kind, run)).state !== 'running') throw new Error(`${labels[kind]} is not running`)
    })
  },
  async stop(kind, run) {
    await run('launchctl', 'bootout', target(kind)).catch(() => undefined)
    await run('launchctl', 'disable', target(kind))
  },
  forgotten: async () => undefined,
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
  lastWords: async (kind, run) => lastLines(await run('tail', '-n', '10', logFile(kind)), 10),
  logCommand: (kind) => `tail -f ${logFile(kind)}`,
}

async function until(timeoutMs: number, attempt: () => Promise<unknown>): Promise<void> {
  for (const endMs = performance.now() + timeoutMs; ; ) {
    try {
      await attempt()
      return
    } catch (error) {
      if (performance.now() > endMs) throw error
      await sleep(500)
    }
  }
}

export const supervisors: Readonly<Partial<Record<NodeJS.Platform, Supervisor>>> = { linux: systemd, darwin: launchd }
