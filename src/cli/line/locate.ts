// Finds the command that the first words name. Global options may come before and between these words.
import { type CommandEntry, type CommandTable, early, type Leaf, type Option } from '../command.ts'
import { didYouMean, nearest } from './suggest.ts'
import { suggestedCommand, synonymOf } from './synonyms.ts'
import { UsageError } from './usage.ts'

export interface Located {
  /** The words of the command as they were typed. */
  readonly path: readonly string[]
  /** A table if the words name the program or a group that is not a command. */
  readonly found: Leaf | CommandTable
  /** The arguments and options of the command. */
  readonly rest: readonly string[]
}

export const isLeaf = (entry: Leaf | CommandEntry | CommandTable): entry is Leaf =>
  'load' in entry && typeof entry.load === 'function'

export function locate(words: readonly string[], root: CommandTable): Located {
  const path: string[] = []
  const options: string[] = []
  let table = root
  let groupCommand: Leaf | undefined
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    if (word.startsWith('-') && word !== '-') {
      if ((word === '--version' || word === '-v') && path.length === 0)
        return locate(['version', ...options, ...words.slice(index + 1)], root)
      if (groupCommand && !isEarly(word))
        return { path, found: groupCommand, rest: [...options, ...words.slice(index)] }
      options.push(word)
      const value = words[index + 1]
      if (takesValue(word, path) && value !== undefined) {
        options.push(value)
        index++
      }
      continue
    }
    // Treats "vm help deploy" as "vm --help deploy".
    if (word === 'help' && path.length > 0 && !Object.hasOwn(table, word)) {
      options.unshift('--help')
      continue
    }
    const [name, entry] = entryOf(root, table, word, path)
    path.push(name)
    if (!('commands' in entry)) return { path, found: entry, rest: [...options, ...words.slice(index + 1)] }
    table = entry.commands
    groupCommand = isLeaf(entry) ? entry : undefined
  }
  return { path, found: groupCommand ?? table, rest: options }
}

function nameAndValue(word: string): readonly [string, string | undefined] {
  if (!word.startsWith('--')) return [word.slice(0, 2), word.slice(2) || undefined]
  const [name = word, inline] = word.split('=', 2)
  return [name, inline]
}

const earlyOption = (typed: string): Option | undefined =>
  Object.entries(early).find(([name, { short }]) => typed === `--${name}` || typed === `-${short}`)?.[1]

const isEarly = (word: string): boolean => earlyOption(nameAndValue(word)[0]) !== undefined

function takesValue(word: string, path: readonly string[]): boolean {
  const [name, inline] = nameAndValue(word)
  const option = earlyOption(name)
  if (option) return option.type !== 'boolean' && inline === undefined
  const where = path.length === 0 ? 'before the command' : `after ${path.join(' ')}`
  throw new UsageError(
    `Unknown option ${name} ${where}${didYouMean(
      name,
      [...Object.keys(early), 'version'].map((known) => `--${known}`),
    )}`,
    helpHint(path),
  )
}

/** Finds the entry of a word, and its name for help: as typed, unless it is a synonym. */
function entryOf(
  root: CommandTable,
  table: CommandTable,
  word: string,
  path: readonly string[],
): readonly [string, CommandEntry] {
  const known = Object.entries(table).find(
    ([name, { aliases, hiddenAliases }]) => name === word || aliases?.includes(word) || hiddenAliases?.includes(word),
  )
  if (known) return [word, known[1]]
  const name = synonymOf(word, table)
  const entry = name === undefined ? undefined : table[name]
  if (name !== undefined && entry) return [name, entry]
  const what = path.length === 0 ? `Unknown command "${word}"` : `Unknown command "${word}" for svc3 ${path.join(' ')}`
  const meant = meantBy(root, table, word)
  throw new UsageError(`${what}${meant === undefined ? '' : `. Did you mean ${meant}?`}`, helpHint(path))
}

const helpHint = (path: readonly string[]): string => `Run ${['svc3', ...path].join(' ')} --help to see the commands`

/** Suggests a similar word of this table, or the same word in another group. At the root, other groups come first. */
function meantBy(root: CommandTable, table: CommandTable, word: string): string | undefined {
  const names = Object.entries(table).flatMap(([name, entry]) => (entry.hidden ? [] : [name, ...(entry.aliases ?? [])]))
  const here = (): string | undefined => suggestedCommand(word, table) ?? nearest(word, names)
  return table === root ? (elsewhere(root, word) ?? here()) : (here() ?? elsewhere(root, word))
}

function elsewhere(root: CommandTable, word: string): string | undefined {
  for (const [group, entry] of Object.entries(root)) {
    if (!('commands' in entry) || entry.hidden) continue
    const { commands } = entry
    const there = Object.hasOwn(commands, word) ? word : (synonymOf(word, commands) ?? suggestedCommand(word, commands))
    if (there !== undefined) return `svc3 ${group} ${there}`
  }
  return undefined
}

export const asksForHelpEarly = (options: readonly string[]): boolean =>
  options.some((option) => option === '-h' || option === '--help')
