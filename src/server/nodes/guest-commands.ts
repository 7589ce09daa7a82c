// Runs a script in a guest as root, by SSH. The script and the password are sent to standard input and are never part of a
// command line.
import type { Duplex } from 'node:stream'
import type { Client } from 'ssh2'
import { reasonOf } from '../../platform/reason.ts'
import { retry, retryPolicies } from '../../platform/retry.ts'
import { closeSsh, type GuestLogin, hangUp, logInBySsh, type SshGuest } from './ssh-login.ts'

interface GuestAccess {
  dial(): Promise<Duplex>
  readonly login: GuestLogin
  readonly withinMs: number
  readonly signal: AbortSignal
}

const commandMs = 60_000
const maxOutput = 8_192

/** Tells whether the user is root, may use sudo, or may use sudo with a password. */
const lookForRoot = `sh -c 'if [ "$(id -u)" = 0 ]; then echo svc3-root is; elif sudo -n true 2>/dev/null; then echo svc3-root may; elif command -v sudo >/dev/null; then echo svc3-root asks; fi'`

/**
 * `prepare` makes the script after the login, because it may contain a token for one use. The messages of errors are
 * sentences for people.
 */
export async function runAsRoot(access: GuestAccess, prepare: () => Promise<string>): Promise<void> {
  const { signal, login } = access
  const guest = await logInWithin(access)
  try {
    const { command, input } = rootShell((await exec(guest.ssh, lookForRoot, '', signal)).output, login)
    const { code, output } = await exec(guest.ssh, command, input + (await prepare()), signal)
    if (code !== 0) throw new Error(`The script in the guest ended with code ${code}: ${lastLine(output)}`)
    hangUp(guest)
  } catch (error) {
    closeSsh(guest)
    throw error
  }
}

function rootShell(
  looked: string,
  { user, password }: GuestLogin,
): { readonly command: string; readonly input: string } {
  const [, how] = /^svc3-root (\w+)$/m.exec(looked) ?? []
  if (how === 'is') return { command: 'sh -s', input: '' }
  if (how === 'may') return { command: 'sudo -n sh -s', input: '' }
  if (how !== 'asks') throw new Error(`User ${user} of the guest is not root, and the guest has no sudo`)
  if (password === undefined) throw new Error(`sudo in the guest requires a password of user ${user}`)
  return { command: `sudo -k -S -p '' sh -s`, input: `${password}\n` }
}

/** Retries until SSH responds. A refused login is not retried. */
async function logInWithin({ dial, login, withinMs, signal }: GuestAccess): Promise<SshGuest> {
  const isRefused = (error: unknown): boolean => (error as { level?: string }).level === 'client-authentication'
  try {
    return await retry(async () => logInBySsh(await dial(), login, signal), {
      policy: { ...retryPolicies.background, withinMs, maxDelayMs: 1_000 },
      signal,
      isRetriable: (error) => !isRefused(error),
    })
  } catch (error) {
    signal.throwIfAborted()
    if (isRefused(error))
      throw new Error(`The guest refused user ${login.user} or its ${login.privateKey ? 'key' : 'password'}`)
    throw new Error(`SSH in the guest did not respond within ${Math.round(withinMs / 1_000)} s (${reasonOf(error)})`)
  }
}

const lastLine = (text: string): string => (text.trim().split('\n').at(-1) ?? '').slice(0, 200)

async function exec(
  ssh: Client,
  command: string,
  input: string,
  signal: AbortSignal,
): Promise<{ readonly code: number; readonly output: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number; output: string }>()
  const bound = AbortSignal.any([signal, AbortSignal.timeout(commandMs)])
  const abort = (): void => reject(new Error('The script in the guest did not finish in time'))
  bound.addEventListener('abort', abort, { once: true })
  const lost = (): void => reject(new Error('The connection to the guest was lost'))
  ssh.once('close', lost)
  ssh.exec(command, (error, channel) => {
    if (error) return reject(error)
    let output = ''
    const take = (data: Buffer): void => {
      if (output.length < maxOutput) output += data.toString('utf8')
    }
    channel.on('data', take)
    channel.stderr.on('data', take)
    channel.on('close', (code: number | undefined) => resolve({ code: code ?? 255, output }))
    channel.end(input)
  })
  return promise.finally(() => {
    bound.removeEventListener('abort', abort)
    ssh.off('close', lost)
  })
}
