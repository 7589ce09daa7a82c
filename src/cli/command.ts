// What a command is: data for parser, help and reference, and a function that does the work; and the table of commands.
import type { ListedNoun } from '../api/nouns.ts'
import type { Client } from '../client/client.ts'
import type { ServerConnection } from './connect/connection.ts'
import type { Host } from './host.ts'
import { type Format, formats, type OutputColumn, type Rendering } from './output/output.ts'

/** What completion offers for a value: names that the service or the configuration knows, or what is on the disk. */
export type Names =
  | ListedNoun
  | 'tags'
  | 'contexts'
  | 'commands'
  | 'files'
  | 'folders'
  /** Nothing: what is named here is to be new. */
  | 'new'

interface OptionText {
  readonly description: string
  /** Where `value` does not say it already (src/cli/line/complete.ts). */
  readonly names?: Names
  /** One letter. */
  readonly short?: string
  /** Its value is never repeated in a message. */
  readonly secret?: true
}
interface BooleanOption extends OptionText {
  readonly type: 'boolean'
}
interface StringOption extends OptionText {
  readonly type: 'string'
  /** The value's name in help, in capitals. */
  readonly value: string
  readonly default?: string
  /** Shown in help in place of a default that is worked out later. */
  readonly defaultText?: string
  readonly required?: true
  readonly repeatable?: true
  /** An argument too many was probably meant for it. */
  readonly strays?: true
}
interface IntegerOption extends OptionText {
  readonly type: 'integer'
  readonly value: string
  readonly min: number
  readonly max: number
  readonly default?: number
  readonly required?: true
}
/** A time, as whole minutes or as a duration such as `1h30m`; its value is in minutes. */
interface MinutesOption extends OptionText {
  readonly type: 'minutes'
  readonly value: string
  readonly max: number
  readonly default?: number
}
/** Memory, as a number of GiB with one decimal or with a unit, such as `8G`; its value is in GiB. */
interface GibibytesOption extends OptionText {
  readonly type: 'gibibytes'
  readonly value: string
  readonly max: number
  readonly default?: number
  /** Shown in help in place of a default that is worked out later. */
  readonly defaultText?: string
}
/** A time such as `1h30m`; its value stays as it was written. */
interface DurationOption extends OptionText {
  readonly type: 'duration'
  readonly value: string
  readonly default?: string
  readonly defaultText?: string
}
interface ChoiceOption extends OptionText {
  readonly type: 'choice'
  readonly choices: readonly string[]
  readonly default?: string
}
export type Option =
  | BooleanOption
  | StringOption
  | IntegerOption
  | MinutesOption
  | GibibytesOption
  | DurationOption
  | ChoiceOption
export type Options = Readonly<Record<string, Option>>

export interface Argument {
  readonly names?: Names
  /** The words that it may be. */
  readonly choices?: readonly string[]
  /** The name in help, in capitals. */
  readonly value: string
  readonly description: string
  readonly required?: true
  /** Takes all that follow; only the last argument may. */
  readonly repeatable?: true
  /** With `repeatable`: takes what follows `--`, as it stands, also what begins with a dash. */
  readonly afterDashes?: true
  /** Its value is never repeated in a message. */
  readonly secret?: true
}
export type Arguments = Readonly<Record<string, Argument>>

type Present<O, T> = O extends { default: unknown } | { required: true } ? T : T | undefined
type OptionValue<O extends Option> = O extends BooleanOption
  ? boolean
  : O extends IntegerOption | MinutesOption | GibibytesOption
    ? Present<O, number>
    : O extends ChoiceOption
      ? Present<O, O['choices'][number]>
      : O extends { repeatable: true }
        ? readonly string[]
        : Present<O, string>
type ArgumentValue<A extends Argument> = A extends { repeatable: true } ? readonly string[] : Present<A, string>

export interface Values<A extends Arguments, O extends Options> {
  readonly args: { readonly [Name in keyof A]: ArgumentValue<A[Name]> }
  readonly options: { readonly [Name in keyof O]: OptionValue<O[Name]> }
}

export type OptionValues<O extends Options> = Values<Record<never, never>, O>['options']

/** A line that works as it stands, without the program's name, and what it does. */
export interface Example {
  readonly line: string
  readonly does: string
}

export interface Command<A extends Arguments = Arguments, O extends Options = Options> {
  readonly description?: string
  readonly arguments: A
  /** Keys are the long names, as typed. */
  readonly options: O
  readonly examples: readonly [Example, ...Example[]]
  /** The command deals with Ctrl-C and SIGTERM itself. */
  readonly ownSignals?: true
  /** Returns the exit code; nothing is 0. Failures are thrown. */
  run(context: Context, values: Values<A, O>): Promise<number | undefined>
}

/** The types of `values` follow from `arguments` and `options`. */
export const defineCommand = <const A extends Arguments, const O extends Options>(value: Command<A, O>): Command =>
  // Sound, because the parser makes the values from these same arguments and options.
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

/** Whole milliseconds: timers take no others. */
export const millisecondsOf = (minutes: number): number => Math.round(minutes * 60_000)

/** For commands that wait, if asked to, for content that may be large. */
export const waitingLonger = {
  timeout: { ...waiting.timeout, default: 60 },
} as const satisfies Options

/** For commands that wait unless asked not to. */
export const waitsByItself = {
  wait: { type: 'boolean', description: 'Wait until done (default)' },
  'no-wait': { type: 'boolean', description: 'Return at once' },
} as const satisfies Options

export const printed = {
  output: { type: 'choice', short: 'o', choices: formats, default: 'table', description: 'Output format' },
} as const satisfies Options

/** Options that may also come before the name of the command. */
export const early: Options = { ...everywhere, ...namespaced, ...printed }

export interface Session {
  readonly client: Client
  readonly namespace: string
  /** The options that lead there again, for a line to copy: empty, or ` -n svc-ios`. */
  readonly sameTargetFlags: string
  readonly apiUrl: string
}

export interface Context {
  readonly host: Host
  readonly format: Format
  /** JSON or YAML: only the answer is printed. */
  readonly isData: boolean
  readonly signal: AbortSignal
  /** All commands, for help and completion. */
  readonly commands: CommandTable
  /** Whether notes and progress are shown: the output is for people, without --quiet. */
  readonly isTalking: boolean
  /** Values that must not appear in any message. */
  readonly secrets: Set<string>
  /** Where the service is and as whom to talk to it: a token that has run out is renewed when it can be. */
  connection(): Promise<ServerConnection>
  /** The service, as whom the environment or the configuration says. Throws when none is known. */
  connect(options?: { readonly timeoutMs?: number; readonly attempts?: number }): Promise<Session>
  /** The answer: a list of records. `none` is said in place of an empty table on a terminal. */
  print<T>(items: readonly T[], columns: readonly OutputColumn<T>[], none: string): Promise<void>
  /** Draws a table row by row, for answers that are streamed. */
  rendering(): Rendering
  /** The answer of a change: the sentence in a table format, otherwise the record, or the records. */
  done(sentence: string, record: unknown): Promise<void>
  /** A remark on stderr, left out when only the answer is wanted. Lines to copy in it begin with `svc3`. */
  note(text: string): void
}

export interface Leaf {
  readonly summary: string
  readonly aliases?: readonly string[]
  /** Former names: they work, and no help shows them. */
  readonly hiddenAliases?: readonly string[]
  /** For programs: not in help, not suggested. */
  readonly hidden?: true
  load(): Promise<{ readonly command: Command }>
}
interface Group {
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly hiddenAliases?: readonly string[]
  readonly hidden?: true
  readonly commands: CommandTable
  /** What the group's own word does when no other follows. */
  load?(): Promise<{ readonly command: Command }>
}
export type CommandEntry = Leaf | Group
export type CommandTable = { readonly [word: string]: CommandEntry }
