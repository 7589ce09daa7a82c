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
const environmentIn = (home: string): Readonly<Record<string, string>> => ({
  ...childEnvironment,
  HOME: os.homedir(),
  CI: 'true',
  TART_HOME: home,
})

export const tartEnvironment = (folder: string): Readonly<Record<string, string>> => environmentIn(tartHome(folder))

/** What tart uses where nobody says anything else. */
export const usualHome = (): string => process.env.TART_HOME || path.join(os.homedir(), '.tart')

interface TartOptions {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
}

export interface Tart {
  readonly program: string
  /** Runs a command on the VMs in a folder of ours. */
  command(folder: string, words: readonly string[], options?: TartOptions): Promise<ExecResult>
  /** Runs a command on the VMs of a home of somebody's own. */
  inHome(home: string, words: readonly string[], options?: TartOptions): Promise<ExecResult>
}

export function createTart(program = 'tart'): Tart {
  const inHome: Tart['inHome'] = (home, words, { signal, timeoutMs = 60_000 } = {}) =>
    exec(program, words, { timeoutMs, env: environmentIn(home), ...(signal && { signal }) })
  return { program, inHome, command: (folder, words, options) => inHome(tartHome(folder), words, options) }
}

/** On tart's own network by its leases; on a bridge by who was heard of; behind both by the guest, where it has tart's agent. */
const resolvers = ['dhcp', 'arp', 'agent'] as const

/** Undefined while it has none: it is booting, or has no network. */
export async function vmAddress(tart: Tart, folder: string, name: string): Promise<string | undefined> {
  for (const resolver of resolvers) {
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
