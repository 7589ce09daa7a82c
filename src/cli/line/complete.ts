// Completes a partial line from the table of commands: the possible words, or the kind of names to fetch. Makes no requests.

import { allNouns, isListed } from '../../api/nouns.ts'
import {
  type Arguments,
  type CommandTable,
  early,
  everywhere,
  type Names,
  type Option,
  type Options,
} from '../command.ts'
import { isLeaf, type Located, locate } from './locate.ts'
import { tokenize } from './parse.ts'
import { synonymsIn } from './synonyms.ts'

export interface Completion {
  readonly value: string
  readonly description: string
}

export interface Cursor {
  /** Candidates, also those that do not begin with the typed text. */
  readonly words: readonly Completion[]
  /** The kind of names to fetch. */
  readonly names?: Names | undefined
  /** The part of the word before the candidates: `--image=`, or `mini-1,` in a list. */
  readonly prefix: string
  /** Values that the line already has. */
  readonly without: readonly string[]
  readonly namespace: string | undefined
  readonly context: string | undefined
}

const listed = allNouns.flatMap(([noun, { typed }]) =>
  isListed(noun) && typed ? [{ noun, word: typed[0] as string }] : [],
)

/** The kind of names after each word of KIND/NAME. */
const byKind: Readonly<Record<string, Names>> = Object.fromEntries(listed.map(({ noun, word }) => [word, noun]))

/** The kind of names for each value name in help. */
const byValue: Readonly<Record<string, Names>> = {
  ...Object.fromEntries(listed.map(({ noun, word }) => [word.toUpperCase(), noun])),
  CONFIG: 'vm-configs',
  TAG: 'tags',
  JOB: 'push-jobs',
  SERVER: 'registry-credentials',
  CONTEXT: 'contexts',
  FILE: 'files',
  DIR: 'folders',
}

/** `before` has the words before the current one, without the name of the program. */
export async function cursorOf(table: CommandTable, before: readonly string[], current: string): Promise<Cursor> {
  const located = locatedOf(table, before)
  const nothing: Cursor = { words: [], prefix: '', without: [], namespace: undefined, context: undefined }
  if (!located) return nothing
  const { found, rest } = located
  const command = isLeaf(found) ? (await found.load()).command : undefined
  const options: Options = command ? { ...command.options, ...everywhere } : early
  const scanned = scan(options, rest)
  const cursor = { ...nothing, namespace: scanned.values.get('namespace'), context: scanned.values.get('context') }
  if (scanned.pending) return { ...cursor, ...fitting(scanned.pending, current) }
  if (scanned.isAfterDashes) return cursor
  const [name = '', inline] = current.startsWith('--') ? splitAt(current, '=') : []
  const option = Object.hasOwn(options, name.slice(2)) ? options[name.slice(2)] : undefined
  if (inline !== undefined)
    return option ? { ...cursor, ...fitting(option, inline, current.slice(0, name.length + 1)) } : cursor
  if (current.startsWith('-')) return { ...cursor, words: optionWords(options, scanned) }
  // A group that is also a command has further words.
  const inside = isLeaf(found) ? ('commands' in found ? (found.commands as CommandTable) : {}) : found
  const words = commandWords(inside, current)
  const argument = command ? argumentAt(command.arguments, scanned.plain.length) : undefined
  if (argument?.names === 'commands') return { ...cursor, words: helpWords(table, scanned.plain) }
  if (argument) return { ...cursor, ...fitting(argument, current), without: argument.repeatable ? scanned.plain : [] }
  return { ...cursor, words: command && words.length === 0 && current === '' ? optionWords(options, scanned) : words }
}

function locatedOf(table: CommandTable, words: readonly string[]): Located | undefined {
  try {
    return locate(words, table)
  } catch {
    return undefined
  }
}

interface ScannedWords {
  /** The option whose value is being typed. */
  readonly pending: Option | undefined
  readonly isAfterDashes: boolean
  readonly plain: readonly string[]
  /** Values by long name; empty for options without a value. */
  readonly values: ReadonlyMap<string, string>
}

function scan(options: Options, words: readonly string[]): ScannedWords {
  const { options: tokens, words: plain, hasTerminator } = tokenize(options, words)
  const last = tokens.at(-1)
  const option = last && Object.hasOwn(options, last.name) ? options[last.name] : undefined
  const isPending = last?.value === undefined && last?.index === words.length - 1 && option?.type !== 'boolean'
  return {
    pending: isPending ? option : undefined,
    isAfterDashes: hasTerminator,
    plain,
    values: new Map(tokens.map(({ name, value = '' }) => [name, value])),
  }
}

function splitAt(text: string, sign: string): [string, string | undefined] {
  const at = text.indexOf(sign)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

interface Valued {
  readonly names?: Names
  readonly value?: string
  readonly choices?: readonly string[]
}

function fitting(
  valued: Option | (Arguments[string] & Valued),
  current: string,
  before = '',
): Pick<Cursor, 'words' | 'names' | 'prefix' | 'without'> {
  const { names, value = '', choices } = valued as Valued
  if (value === 'KIND/NAME') return involved(current, before)
  const isList = value.endsWith('[,…]')
  const list = isList ? current.slice(0, current.lastIndexOf(',') + 1) : ''
  const words = (choices ?? []).map((choice) => ({ value: choice, description: '' }))
  const kind = names ?? byValue[value.replace(/\[,…\]$/, '')]
  return { words, names: words.length > 0 ? undefined : kind, prefix: before + list, without: list.split(',') }
}

function involved(current: string, before: string): Pick<Cursor, 'words' | 'names' | 'prefix' | 'without'> {
  const [kind, name] = splitAt(current, '/')
  const words = Object.keys(byKind).map((word) => ({ value: `${word}/`, description: '' }))
  if (name === undefined) return { words, names: undefined, prefix: before, without: [] }
  return {
    words: [],
    names: Object.hasOwn(byKind, kind) ? byKind[kind] : undefined,
    prefix: `${before}${kind}/`,
    without: [],
  }
}

function argumentAt(args: Arguments, index: number): Arguments[string] | undefined {
  const all = Object.values(args).filter(({ afterDashes }) => !afterDashes)
  const last = all.at(-1)
  return all[index] ?? (last?.repeatable ? last : undefined)
}

const optionWords = (options: Options, { values }: ScannedWords): Completion[] =>
  Object.entries(options)
    .filter(([name, option]) => !values.has(name) || (option.type === 'string' && option.repeatable))
    .map(([name, { description }]) => ({ value: `--${name}`, description }))

/** Offers synonyms only if no command fits, so that `ls` is not offered beside `list`. */
function commandWords(table: CommandTable, current = ''): Completion[] {
  const own = Object.entries(table)
    .filter(([, entry]) => !entry.hidden)
    .map(([value, { summary }]) => ({ value, description: summary }))
  if (current === '' || own.some(({ value }) => value.startsWith(current))) return own
  return synonymsIn(table).map(([value, command]) => ({ value, description: table[command]?.summary ?? '' }))
}

function helpWords(table: CommandTable, path: readonly string[]): Completion[] {
  const found = path.length === 0 ? table : locatedOf(table, path)?.found
  if (!found || (isLeaf(found) && !('commands' in found))) return []
  return commandWords(isLeaf(found) ? (found.commands as CommandTable) : (found as CommandTable))
}
