// The types of commands: data for the parser, the help and the reference, and a function that does the work. Also options
// that many commands share.
import type { ListedNoun } from '../api/nouns.ts'
import type { Client } from '../client/client.ts'
import type { ServerConnection } from './connect/connection.ts'
import type { Host } from './host.ts'
import { type Format, type OutputColumn, outputFormats, type Rendering } from './output/output.ts'

/** What completion offers for a value: names from the service or the configuration, or files. */
export type Names =
  | ListedNoun
  | 'tags'
  | 'contexts'
  | 'commands'
  | 'files'
  | 'folders'
  /** Offers nothing, because the name must be new. */
  | 'new'

interface OptionText {
  readonly description: string
  /** Needed only if `value` does not imply these names (src/cli/line/complete.ts). */
  readonly names?: Names
  readonly short?: string
  /** No message repeats the value. */
  readonly secret?: true
}
interface BooleanOption extends OptionText {
  readonly type: 'boolean'
}
interface ValueOption extends OptionText {
  /** The name of the value in help, in capitals. */
  readonly value: string
  /** Shown in help if the default depends on the environment or the service. */
  readonly defaultText?: string
  readonly required?: true
}
/** The value of a `duration` is text such as `1h30m`. */
interface StringOption extends ValueOption {
  readonly type: 'string' | 'duration'
  readonly default?: string
  readonly repeatable?: true
  /** Marks an option whose value an unexpected argument was probably meant to be. */
  readonly strays?: true
}
/**
 * `minutes` accepts whole minutes or a duration such as `1h30m`, with minutes as the value. `gibibytes` accepts a number with
 * at most one decimal, also with a unit, such as `8G`, with GiB as the value.
 */
interface NumberOption extends ValueOption {
  readonly type: 'integer' | 'minutes' | 'gibibytes'
  /** For integers only. */
  readonly min?: number
  readonly max: number
  readonly default?: number
}
interface ChoiceOption extends OptionText {
  readonly type: 'choice'
  readonly choices: readonly string[]
  readonly default?: string
  readonly defaultText?: string
}
export type Option = BooleanOption | StringOption | NumberOption | ChoiceOption
export type Options = Readonly<Record<string, Option>>

export interface Argument {
  readonly names?: Names
  readonly choices?: readonly string[]
  readonly value: string
  readonly description: string
  readonly required?: true
  /** Takes all remaining words. Only the last argument may be repeatable. */
  readonly repeatable?: true
  /** With `repeatable`: takes all words after `--`, also those that begin with a dash. */
  readonly afterDashes?: true
  readonly secret?: true
}
export type Arguments = Readonly<Record<string, Argument>>

type Present<O, T> = O extends { default: unknown } | { required: true } ? T : T | undefined
type OptionValue<O extends Option> = O extends BooleanOption
  ? boolean
  : O extends NumberOption
    ? Present<O, number>
    : O extends ChoiceOption
      ? Present<O, O['choices'][number]>
      : O extends { repeatable: true }
        ? readonly string[]
        : Present<O, string>
type ArgumentValue<A extends Argument> = A extends { repeatable: true }
  ? readonly string[]
  : Present<A, A extends { choices: readonly (infer Choice)[] } ? Choice : string>

export interface Values<A extends Arguments, O extends Options> {
  readonly args: { readonly [Name in keyof A]: ArgumentValue<A[Name]> }
  readonly options: { readonly [Name in keyof O]: OptionValue<O[Name]> }
}

export type OptionValues<O extends Options> = Values<Record<never, never>, O>['options']

/** A command line that works if pasted, and what it does. */
export interface Example {
  readonly line: string
  readonly does: string
}

export interface Command<A extends Arguments = Arguments, O extends Options = Options> {
  readonly description?: string
  readonly arguments: A
  /** Keys are the long names. */
  readonly options: O
  readonly examples: readonly [Example, ...Example[]]
  /** The command handles Ctrl-C and SIGTERM itself. */
  readonly ownSignals?: true
  /** Returns the exit code; undefined is 0. Throws on failure. */
  run(context: Context, values: Values<A, O>): Promise<number | undefined>
}

/** Derives the types of `values` from `arguments` and `options`. */
export const defineCommand = <const A extends Arguments, const O extends Options>(value: Command<A, O>): Command =>
  // The cast is safe, because the parser makes the values from the same arguments and options.
  value as unknown as Command

/** Options of every command. */
export const everywhere = {
  help: { type: 'boolean', short: 'h', description: 'Show this help' },
  quiet: { type: 'boolean', description: 'Print only the result and errors' },
  'no-color': { type: 'boolean', description: 'Disable colors, like NO_COLOR' },
  debug: { type: 'boolean', description: 'Show requests and responses on stderr, without secrets' },
} as const satisfies Options

/** Options of every command that talks to the service. */
export const connected = {
  context: {
    type: 'string',
    value: 'CONTEXT',
    names: 'contexts',
    defaultText: '$SVC3_CONTEXT, or the current one',
    description: 'Context to use',
  },
} as const satisfies Options

export const namespaced = {
  namespace: {
    type: 'string',
    short: 'n',
    value: 'NAMESPACE',
    defaultText: '$SVC3_DEFAULT_NAMESPACE, the context, or svc-default',
    description: 'Namespace to use',
  },
  ...connected,
} as const satisfies Options

export const waiting = {
  timeout: {
    type: 'minutes',
    short: 't',
    value: 'MINUTES',
    max: 1_440,
    default: 10,
    description: 'How long to wait, in minutes or as 1h30m',
  },
} as const satisfies Options

/** Rounds, because timers take whole milliseconds. */
export const millisecondsOf = (minutes: number): number => Math.round(minutes * 60_000)

/** For commands that can wait for large transfers. */
export const waitingLonger = {
  timeout: { ...waiting.timeout, default: 60 },
} as const satisfies Options

export const printed = {
  output: { type: 'choice', short: 'o', choices: outputFormats, default: 'table', description: 'Output format' },
} as const satisfies Options

/** Options that may also come before the name of the command. */
export const early: Options = { ...everywhere, ...namespaced, ...printed }

export interface Session {
  readonly client: Client
  readonly namespace: string
  /** The options that select the same server and namespace, for commands to paste: empty, or ` -n svc-ios`. */
  readonly sameTargetFlags: string
  readonly apiUrl: string
}

export interface Context {
  readonly host: Host
  readonly format: Format
  /** Whether the format is JSON or YAML, so that nothing but the result is printed. */
  readonly isData: boolean
  readonly signal: AbortSignal
  readonly commands: CommandTable
  /** Whether to show notes and progress: a table format, without --quiet. */
  readonly isTalking: boolean
  /** Values that no message may contain. */
  readonly secrets: Set<string>
  /** The server and the token to use. Renews an expired token if possible. */
  connection(): Promise<ServerConnection>
  /** Connects to the configured server. Throws if there is none. */
  connect(options?: { readonly timeoutMs?: number; readonly attempts?: number }): Promise<Session>
  /** Prints records. On a terminal, `none` replaces an empty table. */
  print<T>(items: readonly T[], columns: readonly OutputColumn<T>[], none: string): Promise<void>
  /** How to render tables that grow row by row. */
  rendering(): Rendering
  /** Prints the result of a change: the sentence in a table format, otherwise the records. */
  done(sentence: string, record: unknown): Promise<void>
  /** Prints a note on stderr, unless only the result is printed. Commands in it begin with `svc3`. */
  note(text: string): void
}

export interface Leaf {
  readonly summary: string
  readonly aliases?: readonly string[]
  /** Former names, which still work but are not in help. */
  readonly hiddenAliases?: readonly string[]
  /** For programs: neither in help nor suggested. */
  readonly hidden?: true
  load(): Promise<{ readonly command: Command }>
}
interface Group {
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly hiddenAliases?: readonly string[]
  readonly hidden?: true
  readonly commands: CommandTable
  /** The command of the group itself, without a further word. */
  load?(): Promise<{ readonly command: Command }>
}
export type CommandEntry = Leaf | Group
export type CommandTable = { readonly [word: string]: CommandEntry }
