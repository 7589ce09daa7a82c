// Runs a program with an argument list (never a shell), a small environment, bounded output, a time limit and an
// AbortSignal. Errors name the program and its last output.
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'

interface ExecOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly cwd?: string
  /** How many bytes from the end of each stream are kept. */
  readonly outputBytes?: number
  readonly input?: string | Uint8Array
  readonly env?: Readonly<Record<string, string>>
  /** Called with standard output as it arrives. */
  readonly onOutput?: ((text: string) => void) | undefined
}

export interface ExecResult {
  readonly stdout: string
  readonly stderr: string
}

export class ExecError extends Error {
  override readonly name = 'ExecError'
  readonly program: string
  /** Undefined if a signal ended the program, or it never ran. */
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

/** Children get no other variables, because those may be secrets, and /proc shows the environment of a child. */
export const childEnvironment: Readonly<Record<string, string>> = {
  PATH: `${process.env.PATH ?? ''}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin`,
  LANG: 'C.UTF-8',
}

export const lastLines = (text: string, count: number): string =>
  text.trim().split('\n').slice(-count).join('\n').slice(-2_000)

/** Output is read for this long after the exit. Grandchildren may keep the pipe open forever. */
const drainMs = 200
/** A process that survives SIGKILL hangs in the kernel, so waiting for it ends. */
const killMs = 2_000

/** The program gets a process group, so that the time limit also ends its children. */
export function exec(program: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
  const { signal, timeoutMs = 60_000, cwd, outputBytes = 1_048_576, input, env = childEnvironment } = options
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    const stdout = tail(outputBytes)
    const stderr = tail(outputBytes)
    const timers: NodeJS.Timeout[] = []
    let ending: 'aborted' | 'late' | undefined
    const end = (why: 'aborted' | 'late') => {
      if (ending) return
      ending = why
      killGroup(child.pid)
      timers.push(setTimeout(settle, killMs))
    }
    const abort = () => end('aborted')
    signal?.addEventListener('abort', abort, { once: true })
    timers.push(setTimeout(() => end('late'), timeoutMs))
    const release = () => {
      for (const timer of timers) clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
      child.unref()
    }
    const settle = () => {
      release()
      const { exitCode, signalCode } = child
      if (ending === 'aborted') reject(signal?.reason)
      else if (ending === 'late')
        reject(new ExecError(program, `did not end within ${timeoutMs} ms and was killed`, undefined, stderr.text()))
      else if (exitCode === 0) resolve({ stdout: stdout.text(), stderr: stderr.text() })
      else {
        const problem = signalCode ? `was killed by ${signalCode}` : `failed with exit code ${exitCode}`
        reject(new ExecError(program, problem, exitCode ?? undefined, stderr.text()))
      }
    }
    child.stdout.on('data', stdout.take)
    if (options.onOutput) child.stdout.on('data', (chunk: Buffer) => options.onOutput?.(chunk.toString('utf8')))
    child.stderr.on('data', stderr.take)
    child.stdin.on('error', () => undefined) // A child that does not read its input fails with an exit code.
    child.stdin.end(input)
    child.on('error', (error: NodeJS.ErrnoException) => {
      release()
      const problem = error.code === 'ENOENT' ? 'is not installed, or not in PATH' : `could not be run (${error.code})`
      reject(new ExecError(program, problem, undefined, '', error))
    })
    // Another turn of the event loop reads what is in the pipe, even if this process is busy.
    child.on('exit', () => timers.push(setTimeout(() => setImmediate(settle), drainMs)))
    child.on('close', settle)
  })
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
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

/** The path of a program, and a fingerprint that changes with its file. */
export async function findProgram(
  name: string,
  searchPath = childEnvironment.PATH ?? '',
): Promise<{ readonly path: string; readonly stamp: string } | undefined> {
  for (const folder of searchPath.split(':').filter((one) => one !== '')) {
    const file = path.join(folder, name)
    const found = await fs.stat(file).catch(() => undefined)
    if (found?.isFile()) return { path: file, stamp: `${found.ino} ${found.mtimeMs} ${found.size}` }
  }
  return undefined
}
