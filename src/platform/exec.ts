// Runs a program: an argument list (never a shell), a small environment, bounded output, a time limit, an AbortSignal.
// An error says which program failed and what it said last.
import { spawn } from 'node:child_process'

export interface ExecOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly cwd?: string
  /** Kept of each stream: the last so many bytes. */
  readonly outputBytes?: number
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
}

export interface ExecResult {
  readonly stdout: string
  readonly stderr: string
}

export class ExecError extends Error {
  override readonly name = 'ExecError'
  readonly program: string
  /** The exit code; undefined where it was ended by a signal or never ran. */
  readonly exitCode: number | undefined
  readonly stderr: string

  constructor(program: string, problem: string, exitCode: number | undefined, stderr: string, cause?: unknown) {
    const last = lastLines(stderr, 5)
    super(`${program} ${problem}${last === '' ? '' : `: ${last}`}`, cause === undefined ? undefined : { cause })
    this.program = program
    this.exitCode = exitCode
    this.stderr = stderr
  }
}

/** Nothing else of our own environment goes to a child: it may hold secrets, and a child's is readable in /proc. */
export const childEnvironment: Readonly<Record<string, string>> = {
  PATH: `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin`,
  LANG: 'C.UTF-8',
}

export const lastLines = (text: string, count: number): string =>
  text.trim().split('\n').slice(-count).join('\n').slice(-2_000)

export function exec(program: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  const { signal, timeoutMs = 60_000, cwd, outputBytes = 1_048_576, input, env = childEnvironment } = options
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
    const stdout = tail(outputBytes)
    const stderr = tail(outputBytes)
    let ending: 'aborted' | 'late' | undefined
    const end = (why: 'aborted' | 'late') => {
      ending ??= why
      child.kill('SIGKILL')
    }
    const abort = () => end('aborted')
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => end('late'), timeoutMs)
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    child.stdout.on('data', stdout.take)
    child.stderr.on('data', stderr.take)
    child.stdin.on('error', () => undefined) // A child that reads nothing says so by its exit.
    child.stdin.end(input)
    child.on('error', (error: NodeJS.ErrnoException) => {
      settle()
      const problem = error.code === 'ENOENT' ? 'is not installed, or not in PATH' : `could not be run (${error.code})`
      reject(new ExecError(program, problem, undefined, '', error))
    })
    child.on('close', (code, killedBy) => {
      settle()
      if (ending === 'aborted') reject(signal?.reason)
      else if (ending === 'late')
        reject(new ExecError(program, `did not end within ${timeoutMs} ms and was killed`, undefined, stderr.text()))
      else if (code === 0) resolve({ stdout: stdout.text(), stderr: stderr.text() })
      else {
        const problem = killedBy ? `was ended by ${killedBy}` : `failed with exit code ${code}`
        reject(new ExecError(program, problem, code ?? undefined, stderr.text()))
      }
    })
  })
}

function tail(limit: number): { take(chunk: Buffer): void; text(): string } {
  let kept: Buffer[] = []
  let size = 0
  return {
    take: (chunk) => {
      kept.push(chunk)
      size += chunk.length
      if (size > 2 * limit) {
        kept = [Buffer.concat(kept).subarray(-limit)]
        size = limit
      }
    },
    text: () => Buffer.concat(kept).subarray(-limit).toString('utf8'),
  }
}
