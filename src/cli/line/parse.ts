// Parses the words of a command line into typed values. Throws a UsageError for invalid ones.
import { parseArgs } from 'node:util'
import { parseDuration } from '../../rules/durations.ts'
import { type Argument, type Arguments, type Command, everywhere, type Option, type Options } from '../command.ts'
import { didYouMean } from './suggest.ts'
import { UsageError } from './usage.ts'

type Value = string | number | boolean | readonly string[] | undefined
export interface Parsed {
  readonly args: Readonly<Record<string, Value>>
  readonly options: Readonly<Record<string, Value>>
}

interface Token {
  /** Index of its word. */
  readonly index: number
  readonly name: string
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

/** Whether the words request help, also if others are invalid. `-1h` is a mistyped duration, not `-h`. */
export const asksForHelp = (command: Command, words: readonly string[]): boolean =>
  tokenize({ ...command.options, ...everywhere }, words).options.some(
    ({ name, value, index }) => name === 'help' && value !== 'false' && !/^-\d/.test(words[index] ?? ''),
  )

export function parse(command: Command, words: readonly string[]): Parsed {
  const options: Options = { ...command.options, ...everywhere }
  const tokens = tokenize(options, words)
  const given = new Map<string, string[]>()
  for (const token of tokens.options) {
    const values = given.get(token.name) ?? []
    values.push(checkToken(token, options))
    given.set(token.name, values)
  }
  const args = takeArguments(command, tokens, new Set(given.keys()))
  const entries = Object.entries(options).map(([name, option]) => [name, convert(name, option, given.get(name))])
  return { args, options: Object.fromEntries(entries) }
}

interface Tokens {
  readonly options: Token[]
  /** Words before `--` that are neither options nor their values. */
  readonly words: string[]
  readonly afterDashes: string[]
  /** Whether the words contain `--`. */
  readonly hasTerminator: boolean
}

export function tokenize(options: Options, words: readonly string[]): Tokens {
  const config = Object.entries(options).map(([name, option]) => {
    const type = option.type === 'boolean' ? 'boolean' : 'string'
    return [name, { type, multiple: true, ...(option.short && { short: option.short }) }] as const
  })
  const { tokens } = parseArgs({
    args: withLongNames(options, words),
    options: Object.fromEntries(config),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const end = tokens.find((token) => token.kind === 'option-terminator')?.index ?? words.length
  const plain = tokens.filter((token) => token.kind === 'positional')
  return {
    options: tokens.filter((token) => token.kind === 'option'),
    words: plain.filter(({ index }) => index < end).map(({ value }) => value),
    afterDashes: plain.filter(({ index }) => index > end).map(({ value }) => value),
    hasTerminator: end < words.length,
  }
}

/** Turns `-o=json` into `--output=json`, because Node takes "=" for a part of the value. */
function withLongNames(options: Options, words: readonly string[]): string[] {
  const end = words.indexOf('--')
  return words.map((word, index) => {
    if (word[0] !== '-' || word[2] !== '=' || (end !== -1 && index > end)) return word
    const name = Object.keys(options).find((each) => options[each]?.short === word[1])
    return name === undefined ? word : `--${name}${word.slice(2)}`
  })
}

/** Returns the value of an option as text. Throws if the option is unknown or misused. */
function checkToken(token: Token, options: Options): string {
  const { name, rawName, value, inlineValue } = token
  const option = Object.hasOwn(options, name) ? options[name] : undefined
  if (!option) throw new UsageError(unknownOption(token, options))
  if (option.type === 'boolean') {
    // The message does not repeat the value: after --password-stdin= it may be a password.
    if (value !== undefined && value !== 'true' && value !== 'false')
      throw new UsageError(`${rawName} takes only true or false`)
    return value ?? 'true'
  }
  const wanted = valueName(option)
  if (value === undefined) throw new UsageError(`${rawName} requires a value: ${rawName} ${wanted}`)
  if (!inlineValue && value.length > 1 && value.startsWith('-')) {
    throw new UsageError(`${rawName} requires a value. If the value begins with a dash, write --${name}=${wanted}`)
  }
  return value
}

/** The value in help and messages. */
export const valueName = (option: Exclude<Option, { readonly type: 'boolean' }>): string =>
  option.type === 'choice' ? option.choices.join('|') : option.value

function unknownOption({ name, rawName }: Token, options: Options): string {
  if (name.length === 1) return `Unknown option ${rawName}`
  // A value without "=" after the name of a secret option must not be shown.
  const glued = Object.keys(options).find((known) => options[known]?.secret && name.startsWith(known))
  if (glued) return `Unknown option --${glued}…. Write --${glued}=VALUE or --${glued} VALUE`
  return `Unknown option ${rawName}${didYouMean(
    rawName,
    Object.keys(options).map((known) => `--${known}`),
  )}`
}

function convert(name: string, option: Option, given: readonly string[] | undefined): Value {
  const last = given?.at(-1)
  if (option.type === 'boolean') return last === 'true'
  if (option.type === 'string' && option.repeatable) return given ?? []
  if (given && given.length > 1 && new Set(given).size > 1) throw new UsageError(`--${name} specified twice`)
  if (last === undefined) {
    if ('required' in option && option.required) throw new UsageError(`Specify --${name} ${valueName(option)}`)
    return option.default
  }
  if (option.type === 'string' && last === '' && !option.secret) throw new UsageError(`--${name} must not be empty`)
  if (option.type === 'integer') return integer(name, option.min ?? 0, option.max, last)
  if (option.type === 'minutes') return minutes(name, option.max, last)
  if (option.type === 'duration' && !parseDuration(last))
    throw new UsageError(`Invalid --${name} "${last}"`, 'Specify a duration, for example 30m, 2h or 7d')
  if (option.type === 'gibibytes') return gibibytes(name, option.max, last)
  if (option.type === 'choice' && !option.choices.includes(last)) {
    const known = option.choices.join(', ')
    throw new UsageError(`Invalid --${name} "${last}": choose from ${known}${didYouMean(last, option.choices)}`)
  }
  return last
}

function integer(name: string, min: number, max: number, text: string): number {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new UsageError(`Invalid --${name} "${text}": specify a whole number from ${min} to ${max}`)
}

function minutes(name: string, max: number, text: string): number {
  const seconds = /^\d+$/.test(text) ? Number(text) * 60 : (parseDuration(text) ?? 0)
  if (seconds >= 1 && seconds <= max * 60) return seconds / 60
  throw new UsageError(`Invalid --${name} "${text}": specify minutes from 1 to ${max}, or a time such as 90s or 1h30m`)
}

/** Accepts G, GB, Gi and GiB as the same unit, like the service. */
function gibibytes(name: string, max: number, text: string): number {
  const [, digits = '0'] = /^(\d{1,6}(?:\.\d)?)(?:gi?b?)?$/i.exec(text) ?? []
  const value = Number(digits)
  if (value > 0 && value <= max) return value
  throw new UsageError(`Invalid --${name} "${text}": specify GiB, such as 8, 4.8 or 8G, at most ${max}`)
}

function takeArguments(
  command: Command,
  { words: before, afterDashes }: Tokens,
  given: ReadonlySet<string>,
): Record<string, Value> {
  const takesRest = Object.values(command.arguments).some((argument) => argument.afterDashes)
  const words = takesRest ? before : [...before, ...afterDashes]
  // Names of images may begin with a dash. Another word may be an option with a secret, so the message does not repeat it.
  const isName = (word: string): boolean => /^[a-z0-9.-]+$/.test(word) && !hasSecret(command)
  if (words.some((word) => word.startsWith('-') && word !== '-' && !isName(word))) {
    throw new UsageError('An argument begins with a dash. Put options before "--"')
  }
  const rest = [...words]
  const values = Object.entries(command.arguments).map(([name, argument]): [string, Value] => {
    if (argument.afterDashes) return [name, afterDashes]
    if (argument.repeatable && (rest.length > 0 || !argument.required)) return [name, rest.splice(0)]
    const word = rest.shift()
    if (word === undefined && argument.required)
      throw new UsageError(`Specify ${argument.value}: ${argument.description}`)
    if (word === '') throw new UsageError(`${argument.value} must not be empty`)
    const { choices } = argument
    if (word !== undefined && choices?.includes(word) === false)
      throw new UsageError(`"${word}" is not one of ${choices.join(', ')}${didYouMean(word, choices)}`)
    return [name, word]
  })
  if (rest.length > 0) throw tooMany(command, rest, given)
  return Object.fromEntries(values)
}

const hasSecret = (command: Command): boolean =>
  [...Object.values(command.options), ...Object.values(command.arguments)].some(({ secret }) => secret)

function tooMany(command: Command, rest: readonly string[], given: ReadonlySet<string>): UsageError {
  const [first = ''] = rest
  const options = Object.entries(command.options)
  const meant = options.find(([name, option]) => 'strays' in option && !given.has(name))?.[0]
  const allowed = argumentsText(command.arguments) || 'no arguments'
  const unexpected = `Unexpected argument "${first}" (expected ${allowed})`
  // Only a plain word that cannot be part of a secret is suggested.
  const isPlain = /^[a-z0-9][\w.-]*$/.test(first) && !options.some(([name, { secret }]) => secret && given.has(name))
  if (meant !== undefined && isPlain && rest.length === 1)
    return new UsageError(unexpected, `Did you mean --${meant} ${first}?`)
  // The words may be parts of an unquoted password, which must not be shown.
  if (hasSecret(command))
    return new UsageError(
      `${rest.length} more argument${rest.length > 1 ? 's' : ''} than expected (${allowed}). Quote values that contain spaces`,
    )
  return new UsageError(unexpected)
}

const argumentText = ({ value, required, repeatable, afterDashes }: Argument): string => {
  const text = `${afterDashes ? '-- ' : ''}${value}${repeatable ? '…' : ''}`
  return required ? text : `[${text}]`
}
const argumentsText = (args: Arguments): string => Object.values(args).map(argumentText).join(' ')

/** The usage of a command. Arguments after `--` come last. */
export function usageLine(name: string, args: Arguments): string {
  const all = Object.values(args)
  const [rest, before] = [
    all.filter((argument) => argument.afterDashes),
    all.filter((argument) => !argument.afterDashes),
  ]
  return [name, ...before.map(argumentText), '[OPTIONS]', ...rest.map(argumentText)].join(' ')
}
