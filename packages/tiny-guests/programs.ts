// The external programs of the builder, their packages, and how to run them.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'

/** Program → its Debian package. */
const programs = {
  'apt-get': 'apt',
  'apt-cache': 'apt',
  'dpkg-deb': 'dpkg',
  xz: 'xz-utils',
  mke2fs: 'e2fsprogs',
  debugfs: 'e2fsprogs',
  sfdisk: 'fdisk',
  mformat: 'mtools',
  mmd: 'mtools',
  mcopy: 'mtools',
} as const satisfies Record<string, string>
type Program = keyof typeof programs

// Users other than root often have no sbin in their path, where mke2fs is.
const searchPath = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/sbin', '/sbin', '/usr/bin', '/bin']

/** Empty if an image can be built. */
export async function missingPrograms(): Promise<Program[]> {
  const names = Object.keys(programs) as Program[]
  const found = await Promise.all(names.map(isInstalled))
  return names.filter((_, index) => !found[index])
}

async function isInstalled(program: Program): Promise<boolean> {
  const tries = searchPath.map((folder) => fs.access(path.join(folder, program), fs.constants.X_OK))
  return (await Promise.allSettled(tries)).some(({ status }) => status === 'fulfilled')
}

class ProgramError extends Error {
  override readonly name = 'ProgramError'
}

interface RunOptions {
  readonly signal: AbortSignal
  readonly folder?: string
  readonly input?: string | Uint8Array
  readonly environment?: Readonly<Record<string, string>>
}

interface Ran {
  readonly output: Buffer
  readonly problems: string
}

const longestProblem = 2_000

/** Runs a program to its end. An error has the last output of the program. */
export async function run(program: Program, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { child, ended } = start(program, args, options)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => void chunks.push(chunk))
  const problems = await ended
  return { output: Buffer.concat(chunks), problems }
}

/**
 * Standard output as a stream. Fails like run(), after the last output; a program that is not read to the end is killed.
 */
export async function* outputOf(
  program: Program,
  args: readonly string[],
  options: RunOptions,
): AsyncGenerator<Buffer, void> {
  const { child, ended } = start(program, args, options)
  // At once, even if a descendant of the program keeps the pipe open.
  ended.catch((error: Error) => child.stdout.destroy(error))
  try {
    yield* child.stdout
    await ended
  } finally {
    child.kill('SIGKILL')
  }
}

function start(
  program: Program,
  args: readonly string[],
  { signal, folder, input, environment }: RunOptions,
): { child: ChildProcessWithoutNullStreams; ended: Promise<string> } {
  signal.throwIfAborted()
  const child = spawn(program, args, {
    signal,
    killSignal: 'SIGKILL',
    ...(folder === undefined ? {} : { cwd: folder }),
    env: { ...process.env, PATH: searchPath.join(path.delimiter), LC_ALL: 'C', TZ: 'UTC', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let problems = ''
  child.stderr.on('data', (chunk: Buffer) => {
    problems = (problems + chunk).slice(-longestProblem)
  })
  // If a program exits without reading its input, the exit code says more than EPIPE.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const ended = new Promise<string>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') return reject(error)
      reject(new ProgramError(`${program} is not installed. Install it: apt-get install ${programs[program]}`))
    })
    child.on('close', (code, killedBy) => {
      if (code === 0) return resolve(problems)
      const end = killedBy === null ? `exit code ${code}` : `signal ${killedBy}`
      reject(new ProgramError(`${program} failed (${end}): ${problems.trim() || 'it said nothing'}`))
    })
  })
  return { child, ended }
}
