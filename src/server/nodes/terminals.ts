// A terminal in the browser. The service connects to the guest by SSH through a tunnel, with backpressure in both
// directions. The password is only in memory, and only during the login.

import type { Duplex } from 'node:stream'
import type { ClientChannel } from 'ssh2'
import { Compile } from 'typebox/compile'
import { ApiError } from '../../api/errors.ts'
import { parseJson } from '../../api/json.ts'
import { type TerminalAnswer, TerminalMessage } from '../../api/vms/terminals.ts'
import { closeSsh, hangUp, logInBySsh, type SshGuest } from './ssh-login.ts'

interface TerminalOptions {
  dial(): Promise<Duplex>
  readonly vm: string
}

const maxRefusals = 3
/** Unread answers to unknown messages would fill the memory. */
const maxUnknown = 10
/** A client that keeps sending after the end is disconnected. */
const goodbyeMs = 1_000

interface GuestShell extends SshGuest {
  readonly shell: ClientChannel
}

/** `socket` carries messages: text as strings, bytes as buffers. */
export function serveTerminal(socket: Duplex, options: TerminalOptions): void {
  let guest: GuestShell | undefined
  let isOpening = false
  let refusals = 0
  let unknown = 0
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
    if (socket.writableEnded) return
    say({ type: 'closed', message })
    socket.end()
    setTimeout(() => socket.destroy(), goodbyeMs).unref()
  }
  const refuseUnknown = (): void => {
    unknown += 1
    if (unknown > maxUnknown) finish('Unknown terminal messages; see the API reference')
    else say({ type: 'refused', message: 'Unknown terminal message', hint: 'See the API reference' })
  }

  const open = async (request: Extract<TerminalMessage, { type: 'open' }>): Promise<void> => {
    isOpening = true
    try {
      guest = await openShell(request, options, closed.signal)
      say({ type: 'opened', hostKey: guest.hostKey })
      carry(socket, guest.shell, finish)
    } catch (error) {
      if (!closed.signal.aborted) refuse(...explained(error, request.user, options.vm))
    } finally {
      isOpening = false
    }
  }

  socket.on('data', (message: Buffer | string) => {
    if (socket.writableEnded) return
    if (typeof message !== 'string') {
      // Input typed before the shell starts is dropped; it may be a password.
      if (guest && !guest.shell.write(message)) {
        socket.pause()
        guest.shell.once('drain', () => socket.resume())
      }
      return
    }
    const request = parsed(message)
    if (!request) return refuseUnknown()
    if (request.type === 'resize') guest?.shell.setWindow(request.rows, request.columns, 0, 0)
    else if (!guest && !isOpening) void open(request)
  })
  socket.once('close', () => {
    closed.abort()
    if (guest) hangUp(guest)
  })
}

/** Copies the output of the shell to the socket, no faster than the socket takes it. */
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

async function openShell(
  { user, password, columns, rows }: Extract<TerminalMessage, { type: 'open' }>,
  { dial }: TerminalOptions,
  signal: AbortSignal,
): Promise<GuestShell> {
  const guest = await logInBySsh(await dial(), { user, password }, signal)
  const { promise, resolve, reject } = Promise.withResolvers<ClientChannel>()
  const size = { cols: columns, rows, width: 0, height: 0 }
  const abort = (): void => reject(new Error('The terminal was closed'))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  guest.ssh.once('close', () => reject(new Error('The guest closed the connection')))
  guest.ssh.shell({ term: 'xterm-256color', ...size }, (error, shell) => (error ? reject(error) : resolve(shell)))
  try {
    return { ...guest, shell: await promise }
  } catch (error) {
    closeSsh(guest)
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
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

const check = Compile(TerminalMessage)

function parsed(text: string): TerminalMessage | undefined {
  const value = parseJson(text)
  return check.Check(value) ? value : undefined
}
