// tart's command line, as far as svc3 needs it. Each VM has a separate TART_HOME in its folder, so VMs never wait for each
// other's locks.
import os from 'node:os'
import path from 'node:path'
import { childEnvironment, type ExecResult, exec } from '../../platform/exec.ts'

export const tartHome = (folder: string): string => path.join(folder, 'tart')
export const tartFolder = (folder: string, name: string): string => path.join(tartHome(folder), 'vms', name)

export const tartFiles = {
  config: 'config.json',
  disk: 'disk.img',
  nvram: 'nvram.bin',
  /** The state of a suspended VM, which fits this host only. */
  state: 'state.vzvmsave',
  /** The socket of tart's guest agent, which tart binds when the VM runs. */
  control: 'control.sock',
} as const

/** Without CI some commands open a window. */
const environmentIn = (home: string): Readonly<Record<string, string>> => ({
  ...childEnvironment,
  HOME: os.homedir(),
  CI: 'true',
  TART_HOME: home,
})

export const tartEnvironment = (folder: string): Readonly<Record<string, string>> => environmentIn(tartHome(folder))

export const usualHome = (): string => process.env.TART_HOME || path.join(os.homedir(), '.tart')

interface TartOptions {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
  readonly input?: string
  readonly onOutput?: (text: string) => void
}

export interface Tart {
  readonly program: string
  /** Runs a command in the TART_HOME of the VM in `folder`. */
  command(folder: string, words: readonly string[], options?: TartOptions): Promise<ExecResult>
  /** Runs a command in any TART_HOME. */
  inHome(home: string, words: readonly string[], options?: TartOptions): Promise<ExecResult>
}

export function createTart(program = 'tart'): Tart {
  const inHome: Tart['inHome'] = (home, words, { signal, timeoutMs = 60_000, input = '', onOutput } = {}) =>
    exec(program, words, { timeoutMs, input, env: environmentIn(home), onOutput, ...(signal && { signal }) })
  return { program, inHome, command: (folder, words, options) => inHome(tartHome(folder), words, options) }
}

/** How tart finds an address: by DHCP leases on its own network, by ARP on a bridge, by its agent in the guest. */
const resolvers = ['dhcp', 'arp', 'agent'] as const

/**
 * Undefined while the guest boots or has no network. tart waits a second after each miss, so all resolvers are asked at
 * once. The first of the list that knows an address counts.
 */
export async function vmAddress(tart: Tart, folder: string, name: string): Promise<string | undefined> {
  const found = new AbortController()
  const answers = resolvers.map(
    (resolver) =>
    tart
      .command(folder, ['ip', name, '--wait', '0', '--resolver', resolver], { timeoutMs: 5_000, signal: found.signal })
      .then(({ stdout }) => stdout.trim(), () => ''), // biome-ignore format: one thought
  )
  try {
    for (const answer of answers) {
      const address = await answer
      if (/^\d{1,3}(\.\d{1,3}){3}$/.test(address)) return address
    }
    return undefined
  } finally {
    found.abort()
  }
}

/** A process alone is no proof that the VM runs: it may be about to fail. */
export async function isRunning(tart: Tart, folder: string, name: string, signal: AbortSignal): Promise<boolean> {
  const answer = await tart.command(folder, ['get', name, '--format', 'json'], { signal, timeoutMs: 15_000 })
  const said = JSON.parse(answer.stdout) as { Running?: unknown; State?: unknown }
  return said.Running === true || said.State === 'running'
}
