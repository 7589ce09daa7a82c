// A host for tests of the command line: output is text, input is given, and this machine's environment is ignored.

import type { CommandEntry, CommandTable, Context } from '../../../src/cli/command.ts'
import { commands } from '../../../src/cli/commands/index.ts'
import { createContext } from '../../../src/cli/context.ts'
import type { Host } from '../../../src/cli/host.ts'
import { isLeaf, locate } from '../../../src/cli/line/locate.ts'
import { type Parsed, parse } from '../../../src/cli/line/parse.ts'
import { main } from '../../../src/cli/main.ts'

export interface FakeHostOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly calledAs?: string
  readonly typedAs?: string
  readonly checkout?: string
  readonly shell?: string
  readonly workingDir?: string
  /** Standard input, as typed on a terminal. */
  readonly input?: string | Uint8Array
  readonly terminal?: { readonly stdin?: boolean; readonly stdout?: boolean }
  readonly interruption?: AbortSignal
  /** Called with all output so far, after each write. */
  readonly onWrite?: (written: { readonly stdout: string; readonly stderr: string }) => void
  readonly now?: Date
  /** The width of the terminal. */
  readonly columns?: number
  /** Commands that change this machine or serve are parsed but not run. */
  readonly inert?: true
}

interface Written {
  readonly stdout: string
  readonly stderr: string
  /** `false` at the start of a prompt, `true` at its end. */
  readonly echo: readonly boolean[]
}

export interface Outcome extends Written {
  readonly exitCode: number
}

/** Runs a command line in this process. */
export async function run(words: readonly string[], options: FakeHostOptions = {}): Promise<Outcome> {
  const { host, written } = fakeHost(options)
  const exitCode = await main(words, host, options.inert ? inert : commands)
  return { exitCode, ...written }
}

const asInert = (entry: CommandEntry): CommandEntry => {
  const { load } = entry
  return {
    ...entry,
    ...(load && { load: async () => ({ command: { ...(await load()).command, run: async () => 0 } }) }),
    ...('commands' in entry && { commands: inertTable(entry.commands) }),
  } as CommandEntry
}
const inertTable = (table: CommandTable): CommandTable =>
  Object.fromEntries(Object.entries(table).map(([word, entry]) => [word, asInert(entry)]))
const { dev, server, agent } = commands
const inert = { ...commands, ...inertTable({ ...(dev && server && agent && { dev, server, agent }) }) }

/** The parsed input of a command that is not run. */
export async function given(
  words: readonly string[],
  options: FakeHostOptions = {},
): Promise<{ readonly context: Context; readonly options: Parsed['options']; readonly written: Written }> {
  const { host, written } = fakeHost(options)
  const { found, rest } = locate(words, commands)
  if (!isLeaf(found)) throw new Error(`${words.join(' ')} is no command`)
  const parsed = parse((await found.load()).command, rest)
  const { signal } = new AbortController()
  return {
    context: createContext({ host, parsed, signal, secrets: new Set(), commands }),
    options: parsed.options,
    written,
  }
}

function fakeHost(options: FakeHostOptions): { readonly host: Host; readonly written: Written } {
  const echo: boolean[] = []
  const written = { stdout: '', stderr: '', echo }
  const sink = (name: 'stdout' | 'stderr', isTerminal: boolean) => ({
    isTerminal,
    columns: options.columns,
    write(text: string | Uint8Array): void {
      written[name] += typeof text === 'string' ? text : Buffer.from(text).toString('utf8')
      options.onWrite?.(written)
    },
    flush: async () => undefined,
  })
  const host: Host = {
    env: options.env ?? {},
    calledAs: options.calledAs ?? 'svc3',
    typedAs: options.typedAs ?? options.calledAs ?? 'svc3',
    ...(options.shell !== undefined && { shell: options.shell }),
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
    now: () => options.now ?? new Date('2026-11-15T11:00:30Z'),
    interruption: () => options.interruption ?? new AbortController().signal,
  }
  return { host, written }
}
