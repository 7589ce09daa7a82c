// A terminal in the browser: the service speaks SSH to the guest through a tunnel, with backpressure both ways. The
// password stays in memory, and only during login.
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Client, ClientChannel } from 'ssh2'
import { ApiError } from '../../api/errors.ts'
import type { TerminalAnswer, TerminalMessage } from '../../api/vms/terminals.ts'

interface TerminalOptions {
  /** To SSH of the guest. */
  dial(): Promise<Duplex>
  readonly vm: string
}

const handshakeMs = 20_000
const maxRefusals = 3
const goodbyeMs = 1_000

interface Guest {
  readonly ssh: Client
  readonly tunnel: Duplex
  readonly shell: ClientChannel
}

/** Takes a connection of messages: text as strings, bytes as buffers. */
export function serveTerminal(socket: Duplex, options: TerminalOptions): void {
  let guest: Guest | undefined
  let isOpening = false
  let refusals = 0
  const closed = new AbortController()
  const say = (answer: TerminalAnswer): void => {
    if (!closed.signal.aborted) socket.write(JSON.stringify(answer))
  }
  const refuse = (message: string, hint: string): void => {
    refusals += 1
    say({ type: 'refused', message, hint })
    if (refusals >= maxRefusals) finish('Too many failed logins; open the terminal again')
  }
  const finish = (message: string): void => {
    say({ type: 'closed', message })
    socket.end()
  }

  const open = async (asked: Extract<TerminalMessage, { type: 'open' }>): Promise<void> => {
    isOpening = true
    try {
      const opened = await logIn(asked, options, closed.signal)
      guest = opened.guest
      say({ type: 'opened', hostKey: opened.hostKey })
      carry(socket, guest.shell, finish)
    } catch (error) {
      if (!closed.signal.aborted) refuse(...explained(error, asked.user, options.vm))
    } finally {
      isOpening = false
    }
  }

  socket.on('data', (message: Buffer | string) => {
    if (typeof message !== 'string') {
      // Input typed before the shell starts is dropped; it may be a password.
      if (guest && !guest.shell.write(message)) {
        socket.pause()
        guest.shell.once('drain', () => socket.resume())
      }
      return
    }
    const request = parsed(message)
    if (!request) return say({ type: 'refused', message: 'Unknown terminal message', hint: 'See the API reference' })
    if (request.type === 'resize') guest?.shell.setWindow(request.rows, request.columns, 0, 0)
    else if (!guest && !isOpening) void open(request)
  })
  socket.once('close', () => {
    closed.abort()
    if (guest) hangUp(guest)
  })
}

/** Both ways, at the pace of the slower. */
function carry(socket: Duplex, shell: ClientChannel, finish: (message: string) => void): void {
  const output = (bytes: Buffer): void => {
    if (!socket.writable || socket.write(bytes)) return
    shell.pause()
    shell.stderr.pause()
    socket.once('drain', () => {
      shell.resume()
      shell.stderr.resume()
    })
  }
  let ending = 'The connection to the guest was closed'
  shell.on('data', output)
  shell.stderr.on('data', output)
  shell.on('exit', (code: number | null, signal?: string) => {
    ending = code === null ? `The shell was ended by ${signal ?? 'a signal'}` : `The shell ended with code ${code}`
  })
  shell.on('close', () => finish(ending))
}

async function logIn(
  { user, password, columns, rows }: Extract<TerminalMessage, { type: 'open' }>,
  { dial }: TerminalOptions,
  signal: AbortSignal,
): Promise<{ guest: Guest; hostKey: string }> {
  const tunnel = await dial()
  const { Client } = await import('ssh2').then((module) => module.default ?? module)
  const ssh = new Client()
  let hostKey = ''
  const { promise, resolve, reject } = Promise.withResolvers<ClientChannel>()
  const abort = (): void => reject(new Error('the browser has gone'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  ssh.on('ready', () =>
    ssh.shell({ term: 'xterm-256color', cols: columns, rows, width: 0, height: 0 }, (error, shell) =>
      error ? reject(error) : resolve(shell),
    ),
  )
  ssh.on('error', reject)
  ssh.on('close', () => reject(new Error('The guest closed the connection')))
  ssh.on('keyboard-interactive', (_name, _text, _language, prompts, answer) => answer(prompts.map(() => password)))
  ssh.connect({
    sock: tunnel,
    username: user,
    password,
    tryKeyboard: true,
    readyTimeout: handshakeMs,
    // Guests make their keys when they first boot: nobody could know them before. The page shows which it was.
    hostVerifier: (key: Buffer) => {
      hostKey = `SHA256:${createHash('sha256').update(key).digest('base64').replaceAll('=', '')}`
      return true
    },
  })
  try {
    return { guest: { ssh, tunnel, shell: await promise }, hostKey }
  } catch (error) {
    // Errors that come later are the same one.
    ssh.on('error', () => undefined)
    ssh.destroy()
    tunnel.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** A guest that hangs answers no goodbye: after a while the connection is cut. */
function hangUp({ ssh, tunnel }: Guest): void {
  const timer = setTimeout(() => tunnel.destroy(), goodbyeMs)
  tunnel.once('close', () => clearTimeout(timer))
  ssh.on('error', () => undefined)
  ssh.end()
}

function explained(error: unknown, user: string, vm: string): [message: string, hint: string] {
  if (error instanceof ApiError) return [error.message, error.options.hint ?? 'Try again']
  const { level, message } = error as Error & { level?: string }
  if (level === 'client-authentication')
    return [
      `The guest refused user "${user}" or the password`,
      'Use an account inside the VM, not your account in svc3',
    ]
  return [
    `SSH on VM ${vm} is not responding: ${message}`,
    'The VM may still be booting; see its screen. A terminal requires an SSH server in the guest',
  ]
}

const isSize = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1_000

function parsed(text: string): TerminalMessage | undefined {
  let value: Record<string, unknown>
  try {
    value = (JSON.parse(text) ?? {}) as Record<string, unknown>
  } catch {
    return undefined
  }
  const { type, user, password, columns, rows } = value
  if (!isSize(columns) || !isSize(rows)) return undefined
  if (type === 'resize') return { type, columns, rows }
  const isLogin = typeof user === 'string' && user !== '' && user.length <= 256 && typeof password === 'string'
  return type === 'open' && isLogin && password.length <= 1_024 ? { type, user, password, columns, rows } : undefined
}
