// Logs in to a guest by SSH through a tunnel, for terminals and for scripts that the service runs in a guest.
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Client } from 'ssh2'

export interface GuestLogin {
  readonly user: string
  readonly password?: string
  readonly privateKey?: string
}

export interface SshGuest {
  readonly ssh: Client
  readonly tunnel: Duplex
  readonly hostKey: string
}

const handshakeMs = 20_000
const closeMs = 1_000

export async function logInBySsh(
  tunnel: Duplex,
  { user, password, privateKey }: GuestLogin,
  signal: AbortSignal,
): Promise<SshGuest> {
  const { Client } = await import('ssh2').then((module) => module.default ?? module)
  const ssh = new Client()
  let hostKey = ''
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const abort = (): void => reject(new Error('The login was canceled'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  ssh.on('ready', resolve)
  ssh.on('error', reject)
  ssh.on('close', () => reject(new Error('The guest closed the connection')))
  ssh.on('keyboard-interactive', (_name, _text, _language, prompts, answer) =>
    answer(prompts.map(() => password ?? '')),
  )
  ssh.connect({
    sock: tunnel,
    username: user,
    ...(password !== undefined && { password, tryKeyboard: true }),
    ...(privateKey !== undefined && { privateKey }),
    readyTimeout: handshakeMs,
    // Guests create their keys at the first boot, so the key cannot be known before. The user is shown its fingerprint.
    hostVerifier: (key: Buffer) => {
      hostKey = `SHA256:${createHash('sha256').update(key).digest('base64').replaceAll('=', '')}`
      return true
    },
  })
  try {
    await promise
    return { ssh, tunnel, hostKey }
  } catch (error) {
    closeSsh({ ssh, tunnel })
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Closes the connection immediately, and ignores errors that follow from that. */
export function closeSsh({ ssh, tunnel }: Pick<SshGuest, 'ssh' | 'tunnel'>): void {
  ssh.on('error', () => undefined)
  ssh.destroy()
  tunnel.destroy()
}

/** Closes the connection, and cuts it if the guest does not respond. */
export function hangUp({ ssh, tunnel }: Pick<SshGuest, 'ssh' | 'tunnel'>): void {
  const timer = setTimeout(() => tunnel.destroy(), closeMs)
  tunnel.once('close', () => clearTimeout(timer))
  ssh.on('error', () => undefined)
  ssh.end()
}
