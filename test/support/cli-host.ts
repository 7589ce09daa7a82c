// A host for tests: what was written is text, what is typed is given, nothing of this machine's environment counts.
import type { Host } from '../../src/cli/host.ts'
import { main } from '../../src/cli/main.ts'
import type { DevOptions, RotateKeyOptions, ServerOptions, UsersOptions } from '../../src/cli/programs.ts'

export interface FakeHostOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly calledAs?: string
  readonly checkout?: string
  /** What comes in; a terminal gives it as typed. */
  readonly input?: string | Uint8Array
  readonly terminal?: { readonly stdin?: boolean; readonly stdout?: boolean }
  readonly interruption?: AbortSignal
  readonly now?: Date
}

export interface Outcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** `false` at the start of a prompt, `true` at its end. */
  readonly echo: readonly boolean[]
  readonly started: readonly (DevOptions | ServerOptions | RotateKeyOptions | UsersOptions)[]
}

/** Runs a command line in this process. */
export async function run(words: readonly string[], options: FakeHostOptions = {}): Promise<Outcome> {
  const written = { stdout: '', stderr: '' }
  const echo: boolean[] = []
  const started: (DevOptions | ServerOptions | RotateKeyOptions | UsersOptions)[] = []
  const start = async (given: DevOptions | ServerOptions | RotateKeyOptions | UsersOptions): Promise<number> => {
    started.push(given)
    return 0
  }
  const sink = (name: 'stdout' | 'stderr', isTerminal: boolean) => ({
    isTerminal,
    write(text: string): void {
      written[name] += text
    },
  })
  const host: Host = {
    env: options.env ?? {},
    calledAs: options.calledAs ?? 'svc3',
    version: '3.0.0-here',
    checkout: options.checkout ?? '/nowhere/svc3',
    workingDir: '/nowhere/else',
    stdin: {
      isTerminal: options.terminal?.stdin ?? false,
      async *chunks(signal) {
        signal.throwIfAborted()
        yield Buffer.from(options.input ?? '')
      },
      setEcho: (on) => echo.push(on),
    },
    stdout: sink('stdout', options.terminal?.stdout ?? false),
    stderr: sink('stderr', options.terminal?.stdout ?? false),
    programs: { dev: start, server: start, rotateKey: start, users: start },
    now: () => options.now ?? new Date('2026-11-15T11:00:30Z'),
    interruption: () => options.interruption ?? new AbortController().signal,
  }
  const exitCode = await main(words, host)
  return { exitCode, ...written, echo, started }
}
