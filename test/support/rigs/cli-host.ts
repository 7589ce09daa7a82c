// A host for tests: what was written is text, what is typed is given, nothing of this machine's environment counts.
import type { Host } from '../../../src/cli/host.ts'
import { main } from '../../../src/cli/main.ts'
import type { DoctorCheck, Programs, ServiceStatus } from '../../../src/cli/programs.ts'

/** What any of the programs was started with. */
type Started = Parameters<Programs[keyof Programs]>[0]

export interface FakeHostOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly calledAs?: string
  readonly checkout?: string
  readonly workingDir?: string
  /** What comes in; a terminal gives it as typed. */
  readonly input?: string | Uint8Array
  readonly terminal?: { readonly stdin?: boolean; readonly stdout?: boolean }
  readonly interruption?: AbortSignal
  /** Told what has been written so far, each time something is. */
  readonly onWrite?: (written: { readonly stdout: string; readonly stderr: string }) => void
  readonly now?: Date
  /** What the programs answer that answer. */
  readonly status?: ServiceStatus
  readonly checks?: readonly DoctorCheck[]
}

export interface Outcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** `false` at the start of a prompt, `true` at its end. */
  readonly echo: readonly boolean[]
  readonly started: readonly Started[]
}

/** Runs a command line in this process. */
export async function run(words: readonly string[], options: FakeHostOptions = {}): Promise<Outcome> {
  const written = { stdout: '', stderr: '' }
  const echo: boolean[] = []
  const started: Started[] = []
  const start = async (given: Started): Promise<number> => {
    started.push(given)
    return 0
  }
  const sink = (name: 'stdout' | 'stderr', isTerminal: boolean) => ({
    isTerminal,
    write(text: string | Uint8Array): void {
      written[name] += typeof text === 'string' ? text : Buffer.from(text).toString('utf8')
      options.onWrite?.(written)
    },
    flush: async () => undefined,
  })
  const host: Host = {
    env: options.env ?? {},
    calledAs: options.calledAs ?? 'svc3',
    version: '3.0.0-here',
    checkout: options.checkout ?? '/nowhere/svc3',
    workingDir: options.workingDir ?? '/nowhere/else',
    self: ['/nowhere/node', '/nowhere/svc3/dist/svc3.cjs'],
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
    programs: {
      dev: start,
      server: start,
      rotateKey: start,
      rotateKeys: start,
      backup: start,
      restore: start,
      migrateStore: start,
      forgetServer: start,
      users: start,
      agent: start,
      service: start,
      serviceStatus: async (place) => {
        started.push(place)
        return options.status ?? { name: `svc3-${place.kind}`, state: 'not installed', log: 'nothing' }
      },
      doctor: async (asked) => {
        started.push(asked)
        return options.checks ?? []
      },
    },
    now: () => options.now ?? new Date('2026-11-15T11:00:30Z'),
    interruption: () => options.interruption ?? new AbortController().signal,
  }
  const exitCode = await main(words, host)
  return { exitCode, ...written, echo, started }
}
