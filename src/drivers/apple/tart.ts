// tart's command line, as far as it is needed: each VM has a TART_HOME of its own, in its folder, so that everything of it
// is there and VMs never wait for each other's locks.
import os from 'node:os'
import path from 'node:path'
import { childEnvironment, type ExecResult, exec } from '../../platform/exec.ts'

/** Relative to the VM's folder. */
const homeName = 'tart'

export const tartHome = (folder: string): string => path.join(folder, homeName)
export const tartFolder = (folder: string, name: string): string => path.join(tartHome(folder), 'vms', name)

/** What tart has in the folder of a VM. */
export const tartFiles = {
  config: 'config.json',
  disk: 'disk.img',
  nvram: 'nvram.bin',
  /** What a suspended VM was doing. It fits this host only. */
  state: 'state.vzvmsave',
} as const

/** CI: without it, some commands would open a window. */
export const tartEnvironment = (folder: string): Readonly<Record<string, string>> => ({
  ...childEnvironment,
  HOME: os.homedir(),
  CI: 'true',
  TART_HOME: tartHome(folder),
})

export interface TartOptions {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
}

export interface Tart {
  readonly program: string
  /** Runs a command on the VMs in a folder of ours. */
  command(folder: string, words: readonly string[], options?: TartOptions): Promise<ExecResult>
}

export const createTart = (program = 'tart'): Tart => ({
  program,
  command: (folder, words, { signal, timeoutMs = 60_000 } = {}) =>
    exec(program, words, { timeoutMs, env: tartEnvironment(folder), ...(signal && { signal }) }),
})

/** Undefined while it has none: it is booting, or has no network. */
export async function addressOf(tart: Tart, folder: string, name: string): Promise<string | undefined> {
  for (const resolver of ['dhcp', 'arp']) {
    const answer = await tart
      .command(folder, ['ip', name, '--wait', '0', '--resolver', resolver], { timeoutMs: 10_000 })
      .catch(() => undefined)
    const address = answer?.stdout.trim() ?? ''
    if (/^\d{1,3}(\.\d{1,3}){3}$/.test(address)) return address
  }
  return undefined
}

/** Whether tart says that it runs. Its process alone is no proof: it may be about to fail. */
export async function isRunning(tart: Tart, folder: string, name: string, signal: AbortSignal): Promise<boolean> {
  const answer = await tart.command(folder, ['get', name, '--format', 'json'], { signal, timeoutMs: 15_000 })
  const said = JSON.parse(answer.stdout) as { Running?: unknown; State?: unknown }
  return said.Running === true || said.State === 'running'
}
