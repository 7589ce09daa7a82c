// Reads a password or another secret from the keyboard or a pipe. It is not echoed, and messages do not repeat it.
import type { Context } from '../command.ts'
import { readStdin } from '../input.ts'
import { Interrupted, UsageError } from '../line/usage.ts'
import { noteOnce } from '../note-once.ts'

const maxBytes = 64 * 1024
const keys = { interrupt: '\u0003', end: '\u0004', backspace: '\b', delete: '\u007f', killLine: '\u0015' } as const

interface SecretOptions {
  /** The word for the secret in messages. */
  readonly noun?: string
  /** The hint for an empty secret. */
  readonly next?: string
  /**
   * Throws for an invalid secret. The message must not contain it, because only valid secrets are redacted from messages.
   */
  readonly check?: (password: string) => void
}

/** Reads the password from standard input; on a terminal, asks for it. */
export async function readPassword(context: Context, question: string, wanted: SecretOptions = {}): Promise<string> {
  const { noun = 'password', next = 'Pipe it in, for example: printf %s "$PASSWORD" | svc3 …', check } = wanted
  const { stdin } = context.host
  const password = stdin.isTerminal ? await ask(context, question) : await readAll(context, noun)
  if (password === '') throw new UsageError(`The ${noun} is empty`, next)
  check?.(password)
  context.secrets.add(password)
  return password
}

/** Returns the password of --password or --password-stdin, or asks for it on a terminal. */
export async function choosePassword(
  context: Context,
  { given, fromStdin, question }: { given: string | undefined; fromStdin: boolean; question: string },
): Promise<string> {
  const advice = 'Use --password-stdin to read it from a pipe or a file'
  if (given !== undefined && fromStdin) throw new UsageError('Use either --password or --password-stdin', advice)
  if (given === '') throw new UsageError('The password is empty', advice)
  if (given !== undefined) {
    noteOnce(context, 'password', 'Other users of this machine can see --password; --password-stdin is safer')
    return given
  }
  if (!fromStdin && !context.host.stdin.isTerminal) throw new UsageError('A password is required', advice)
  return readPassword(context, question)
}

async function readAll(context: Context, noun: string): Promise<string> {
  const tooLong = (): UsageError => new UsageError(`Standard input is too long for a ${noun}`, 'Check the file')
  const bytes = await readStdin(context, maxBytes, tooLong)
  try {
    // Editors and `echo` end a file with a newline; exactly one is not part of the password.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    throw new UsageError(`The ${noun} is not UTF-8 text`, 'Check the file')
  }
}

/** Reads one line from the keyboard without echo. The question goes to stderr, because stdout is for the result. */
async function ask({ host, signal }: Context, question: string): Promise<string> {
  const { stdin, stderr } = host
  // Echo ends before the question, so that keys that are typed early are not shown.
  stdin.setEcho(false)
  try {
    stderr.write(question)
    const decoder = new TextDecoder()
    let typed: string[] = []
    for await (const chunk of stdin.chunks(signal)) {
      for (const key of decoder.decode(chunk, { stream: true })) {
        if (key === '\r' || key === '\n' || key === keys.end) return typed.join('')
        if (key === keys.interrupt) throw new Interrupted('Interrupted')
        if (key === keys.backspace || key === keys.delete) typed.pop()
        else if (key === keys.killLine) typed = []
        else typed.push(key)
      }
    }
    return typed.join('')
  } finally {
    stdin.setEcho(true)
    stderr.write('\n')
  }
}
