// Runs the command line in this process.
import { addAbortSignal } from 'node:stream'
import { quoted } from '../rules/shell-word.ts'
import { commands } from './commands/index.ts'
import type { Host, InputStream, Sink } from './host.ts'
import { exitCodes } from './line/usage.ts'
import { main } from './main.ts'

const names = ['svc3', 'orka3']

/** How to call this program again. `file` has a path also if the shell found it in PATH. */
function typedAs(file: string, searched = ''): string {
  const at = file.lastIndexOf('/')
  return quoted(searched.split(':').includes(file.slice(0, at)) ? file.slice(at + 1) : file)
}

interface ProcessOptions {
  readonly checkout: string
  readonly isInstalled?: boolean
  readonly version: string
}

/** Runs the command line of this process, then ends the process. */
export async function runProcess(options: ProcessOptions): Promise<never> {
  const file = process.env.SVC3_CALLED_AS || 'svc3'
  const calledAs = file.slice(file.lastIndexOf('/') + 1)
  const stdout = sinkOf(process.stdout)
  const stderr = sinkOf(process.stderr)
  const host: Host = {
    ...options,
    env: process.env,
    calledAs: names.includes(calledAs) ? calledAs : 'svc3',
    typedAs: typedAs(file, process.env.PATH),
    shell: `${process.getuid?.() ?? 'user'}-${process.ppid}`,
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
  const { failure } = stdout
  // A reader may close the pipe early. Any other failure means that the output is not complete.
  const isIncomplete = failure !== undefined && failure.code !== 'EPIPE'
  if (isIncomplete) stderr.write(`${host.calledAs}: Cannot write to standard output (${failure.code})\n`)
  await stderr.flush()
  process.exit(isIncomplete ? exitCodes.failed : exitCode)
}

function sinkOf(stream: NodeJS.WriteStream): Sink & { failure?: NodeJS.ErrnoException } {
  const sink: Sink & { failure?: NodeJS.ErrnoException } = {
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.columns
    },
    get rows() {
      return stream.rows
    },
    write(text) {
      if (!sink.failure) stream.write(text)
    },
    flush: () => new Promise((resolve) => (stream.destroyed ? resolve() : stream.write('', () => resolve()))),
  }
  stream.on('error', (error) => {
    sink.failure ??= error
  })
  return sink
}

const stdin: InputStream = {
  get isTerminal() {
    return process.stdin.isTTY === true
  },
  async *chunks(signal) {
    // Standard input is kept open after the first line, because a second question may follow.
    yield* addAbortSignal(signal, process.stdin).iterator({ destroyOnReturn: false })
  },
  setEcho(on) {
    process.stdin.setRawMode(!on)
  },
}
