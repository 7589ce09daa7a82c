// A real `svc3 dev` process for end-to-end tests, run from the build as `npm start` runs it.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { endGuestsOf, endService } from './leftovers.ts'

export const root = path.resolve(import.meta.dirname, '../../..')
export const program = path.join(root, 'bin', 'svc3')

export interface DevServer extends AsyncDisposable {
  readonly process: ChildProcess
  readonly apiUrl: string
  readonly token: string
  readonly pid: number
  /** The output of both streams so far. */
  readonly output: () => string
  call(
    method: string,
    url: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: { [key: string]: unknown } }>
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  kill(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** The process ended before it was ready. */
export class EndedEarly extends Error {
  readonly signal: NodeJS.Signals | null
  constructor({ code, signal }: { code: number | null; signal: NodeJS.Signals | null }, output: string) {
    super(`svc3 dev ended with ${signal ?? code}:\n${output}`)
    this.signal = signal
  }
}

const ifThere = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
}

/** The names of all files below a folder. A running service may delete some during the call. */
export async function filesIn(folder: string, below = ''): Promise<string[]> {
  const entries = (await fs.readdir(path.join(folder, below), { withFileTypes: true }).catch(ifThere)) ?? []
  const names = entries.map(async (entry) => {
    const name = path.join(below, entry.name)
    return entry.isDirectory() ? filesIn(folder, name) : entry.isFile() ? [name] : []
  })
  return (await Promise.all(names)).flat()
}

/** The names of files that contain this text. */
export async function filesWith(folder: string, text: string): Promise<string[]> {
  const found: string[] = []
  for (const name of await filesIn(folder))
    if ((await fs.readFile(path.join(folder, name)).catch(ifThere))?.includes(text)) found.push(name)
  return found
}

/** VMs of services with data in this folder end with this process at the latest. */
export async function makeFolder(): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-e2e-'))
  endGuestsOf(folder)
  return folder
}

export async function startDev(
  dataDir: string,
  options: {
    listen?: string
    args?: readonly string[]
    env?: Record<string, string>
    command?: readonly string[]
  } = {},
): Promise<DevServer> {
  const [command = program, ...first] = options.command ?? [program, 'dev']
  const args = [...first, '--listen', options.listen ?? '127.0.0.1:0', '--data', dataDir, ...(options.args ?? [])]
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  endService(child)
  const chunks: Buffer[] = []
  const output = (): string => Buffer.concat(chunks).toString()
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.on('exit', (code, signal) => resolve({ code, signal })),
  )
  const apiUrl = await new Promise<string>((resolve, reject) => {
    let isReady = false
    const read = (chunk: Buffer): void => {
      chunks.push(chunk)
      // A server under load prints megabytes; searching all of it for each chunk would slow it down.
      if (isReady) return
      const [, url] = /^svc3 ready at (\S+)$/m.exec(output()) ?? []
      if (!url) return
      isReady = true
      resolve(url)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.on('error', reject)
    void ended.then((how) => reject(new EndedEarly(how, output())))
  })
  const connection = JSON.parse(await fs.readFile(path.join(dataDir, 'connection.json'), 'utf8'))
  const kill = (signal: NodeJS.Signals): typeof ended => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    return ended
  }
  return {
    process: child,
    apiUrl,
    token: connection.adminToken,
    pid: connection.pid,
    output,
    call: async (method, url, body, headers = {}) => {
      const response = await fetch(apiUrl + url, {
        method,
        headers: {
          authorization: `Bearer ${connection.adminToken}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as { [key: string]: unknown } }
    },
    ended,
    kill,
    [Symbol.asyncDispose]: async () => {
      await kill('SIGKILL')
    },
  }
}

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program with the given standard input. */
export function svc3(
  args: readonly string[],
  options: { env?: Record<string, string>; input?: string; cwd?: string; timeoutMs?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      // A waiting command ends with its test.
      {
        cwd: options.cwd ?? root,
        env: { ...process.env, ...options.env },
        timeout: options.timeoutMs ?? 300_000,
        killSignal: 'SIGKILL',
      },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(options.input ?? '')
  })
}
