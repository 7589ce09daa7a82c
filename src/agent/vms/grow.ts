// Grows partition and file system in a guest whose disk has grown, through SSH, with the commands that an administrator would
// use. The password is sent over the encrypted connection and to sudo's standard input, never in a command line.
import net from 'node:net'
import type { Client as SshClient } from 'ssh2'
import { isUnreachable } from '../../api/vms/guest-reach.ts'
import {
  growScript,
  lastLines,
  manualGrowth,
  parseSizes,
  parseSystem,
  problemWith,
  systemScript,
} from '../../drivers/guest-growth.ts'
import { reasonOf } from '../../platform/reason.ts'
import { orAborted, wait } from '../../platform/retry.ts'
import { probeSsh } from './guest-watch.ts'

export interface GrowthRequest {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly diskGb: number
  /** Whether the VM itself holds the port; absent if the hypervisor cannot tell. */
  isOwn?(): Promise<boolean>
}

const timeoutMs = 120_000
const handshakeMs = 20_000
const commandMs = 180_000
const goodbyeMs = 1_000
const maxOutputBytes = 64 * 1024

/** Returns a warning with manual instructions after a failure. Throws only if the signal aborts. */
export async function growGuest(growth: GrowthRequest, signal: AbortSignal): Promise<string | undefined> {
  try {
    const guest = await connect(growth, signal)
    try {
      await growThrough(guest.ssh, growth, signal)
      return undefined
    } finally {
      hangUp(guest)
    }
  } catch (error) {
    signal.throwIfAborted()
    return manualGrowth(withoutPassword(reasonOf(error), growth.password))
  }
}

interface Guest {
  readonly ssh: SshClient
  /** Destroyed by `hangUp`, because ssh2 does not destroy it after the goodbye. */
  readonly socket: net.Socket
}

/** A guest that hangs does not answer the goodbye, so the connection is destroyed after a timeout. */
function hangUp({ ssh, socket }: Guest): void {
  const timer = setTimeout(() => socket.destroy(), goodbyeMs)
  socket.once('close', () => clearTimeout(timer))
  ssh.end()
}

async function growThrough(ssh: SshClient, { password }: GrowthRequest, signal: AbortSignal): Promise<void> {
  const system = parseSystem((await run(ssh, quoted(systemScript), '', signal)).stdout)
  const script = quoted(growScript[system.name])
  // The script has no secrets, so it may be part of the command. Standard input is used for the password only.
  const command = system.isRoot ? script : `sudo -k -S -p '' ${script}`
  const { code, stdout, stderr } = await run(ssh, command, system.isRoot ? '' : `${password}\n`, signal)
  if (code !== 0) throw new Error(lastLines(stderr || stdout) || `the commands in the guest ended with code ${code}`)
  const problem = problemWith(parseSizes(stdout))
  if (problem) throw new Error(problem)
}

const quoted = (script: string): string => `sh -c '${script}'`

export const withoutPassword = (text: string, password: string): string =>
  password === '' ? text : text.replaceAll(password, '…')

/** Retries while the guest boots. A refused password is final. */
async function connect(growth: GrowthRequest, signal: AbortSignal): Promise<Guest> {
  const endMs = performance.now() + timeoutMs
  let foreignAnswers = 0
  for (;;) {
    try {
      return await connectOnce(growth, signal)
    } catch (error) {
      signal.throwIfAborted()
      // The port may be free for a moment while the VM's network restarts, so a single negative answer does not count.
      const isOwn = await growth.isOwn?.().catch(() => undefined)
      foreignAnswers = isOwn === false ? foreignAnswers + 1 : 0
      if (foreignAnswers > 1)
        throw new Error(`port ${growth.port} of the node is not open by the VM; the guest may have ended`)
      if ((error as { level?: string }).level === 'client-authentication')
        throw new Error(`the guest refused user "${growth.user}" or the password`)
      if (performance.now() > endMs)
        throw new Error(`SSH in the guest did not respond within ${timeoutMs / 1000} s (${reasonOf(error)})`)
      await wait(1_000, signal)
    }
  }
}

async function connectOnce({ host, port, user, password, isOwn }: GrowthRequest, signal: AbortSignal): Promise<Guest> {
  // Port forwarders accept connections before the guest does. Such connections hang, so they are not used for the login.
  if (isUnreachable(await probeSsh({ ip: host, port }, signal))) throw new Error('no SSH server responds')
  const { Client } = await import('ssh2').then((module) => module.default ?? module)
  const ssh = new Client()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  ssh.on('ready', resolve).on('error', reject)
  ssh.on('close', () => reject(new Error('the connection was closed')))
  ssh.on('keyboard-interactive', (_name, _text, _language, prompts, answer) => answer(prompts.map(() => password)))
  // The host key is unknown. The VM is identified by the port that is forwarded to it, if it still holds that port.
  const hostVerifier = (_: Buffer, verify: (isRight: boolean) => void): void => {
    Promise.resolve(isOwn?.() ?? true).then(verify, () => verify(false))
  }
  const socket = net.connect({ host, port })
  const login = { username: user, password, tryKeyboard: true }
  ssh.connect({ sock: socket, ...login, hostVerifier, readyTimeout: handshakeMs })
  try {
    await orAborted(promise, signal)
    return { ssh, socket }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

async function run(ssh: SshClient, command: string, input: string, signal: AbortSignal): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  ssh.on('close', () => reject(new Error('the connection to the guest was lost')))
  ssh.exec(command, (error, channel) => {
    if (error) return reject(error)
    const output = { stdout: '', stderr: '' }
    const take = (name: keyof typeof output) => (data: Buffer) => {
      if (output[name].length < maxOutputBytes) output[name] += data.toString('utf8')
    }
    channel.on('data', take('stdout'))
    channel.stderr.on('data', take('stderr'))
    channel.on('close', (code: number | undefined) => resolve({ code: code ?? 255, ...output }))
    channel.end(input)
  })
  return orAborted(promise, AbortSignal.any([signal, AbortSignal.timeout(commandMs)])).catch((error: Error) => {
    signal.throwIfAborted()
    throw error.name === 'TimeoutError' ? new Error('the commands in the guest do not finish') : error
  })
}
