// Runs the command line in this process.
import fs from 'node:fs'
import { quoted } from '../rules/shell-word.ts'
import { commands } from './commands/index.ts'
import type { Host, InputStream, Sink } from './host.ts'
import { main } from './main.ts'

const names = ['svc3', 'orka3']

/** How to call this program again from the same folder: what the shell found in PATH has its path here, too. */
function typedAs(file: string, searched = ''): string {
  const at = file.lastIndexOf('/')
  return quoted(searched.split(':').includes(file.slice(0, at)) ? file.slice(at + 1) : file)
}

interface ProcessOptions {
  readonly checkout: string
  readonly isInstalled?: boolean
  readonly version: string
}

/** Runs the command line that this process was started with, and ends the process. */
export async function runProcess(options: ProcessOptions): Promise<never> {
  const file = process.env.SVC3_CALLED_AS || 'svc3'
  const calledAs = file.slice(file.lastIndexOf('/') + 1)
  const stdout = descriptorSink(1, () => process.stdout)
  const stderr = descriptorSink(2, () => process.stderr)
  const host: Host = {
    ...options,
    env: process.env,
    calledAs: names.includes(calledAs) ? calledAs : 'svc3',
    typedAs: typedAs(file, process.env.PATH),
    get workingDir() {
      return process.cwd()
    },
    get self() {
      return [process.execPath, ...process.execArgv, process.argv[1] ?? '']
    },
    stdin,
    stdout,
    stderr,
    now: () => new Date(),
    interruption() {
      const controller = new AbortController()
      process.once('SIGINT', () => controller.abort())
      return controller.signal
    },
  }
  const exitCode = await main(process.argv.slice(2), host, commands)
  await stdout.flush()
  await stderr.flush()
  process.exit(exitCode)
}

function isTerminal(descriptor: number): boolean {
  try {
    if (!fs.fstatSync(descriptor).isCharacterDevice()) return false
  } catch {
    return false // closed by whoever started us
  }
  // Loaded late, as node:stream below: help has no use for them, and they would be half of what it costs.
  return process.getBuiltinModule('node:tty').isatty(descriptor)
}

/**
 * Writes at once and leaves nothing to wait for. A pipe that is full and does not block is handed to Node's stream.
 * When the reader went away (EPIPE), the rest is dropped; when the answer cannot be written, that is a failure.
 */
function descriptorSink(descriptor: 1 | 2, stream: () => NodeJS.WriteStream): Sink {
  let terminal: boolean | undefined
  let gone = false
  let queued: Promise<void> | undefined

  const writeLater = (rest: Uint8Array): void => {
    const output = stream()
    if (!queued) output.on('error', () => undefined)
    const before = queued ?? Promise.resolve()
    const written = new Promise<void>((resolve) => output.write(rest, () => resolve()))
    queued = before.then(() => written)
  }

  return {
    get isTerminal() {
      terminal ??= isTerminal(descriptor)
      return terminal
    },
    get columns() {
      return stream().columns
    },
    get rows() {
      return stream().rows
    },
    write(text) {
      let rest: Uint8Array = typeof text === 'string' ? Buffer.from(text) : text
      while (rest.length > 0 && !gone) {
        if (queued) return writeLater(rest)
        try {
          rest = rest.subarray(fs.writeSync(descriptor, rest))
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException
          if (code === 'EAGAIN') return writeLater(rest)
          gone = true
          if (code !== 'EPIPE' && descriptor === 1) throw new Error(`Cannot write to standard output (${code})`)
        }
      }
    },
    async flush() {
      await queued
    },
  }
}

const stdin: InputStream = {
  get isTerminal() {
    return isTerminal(0)
  },
  async *chunks(signal) {
    // Not destroyed at the end of a line: there may be a second question.
    const { addAbortSignal } = process.getBuiltinModule('node:stream')
    yield* addAbortSignal(signal, process.stdin).iterator({ destroyOnReturn: false })
  },
  setEcho(on) {
    process.stdin.setRawMode(!on)
  },
}
