// Finds the command that the first words name. Global options may come before and between these words.
import type { CommandTable, Entry, Leaf } from '../command.ts'
import { didYouMean } from './suggest.ts'
import { UsageError } from './usage.ts'

export interface Located {
  /** The words as they were typed. */
  readonly path: readonly string[]
  /** A table when the words stop at the root or at a group that does nothing by itself. */
  readonly found: Leaf | CommandTable
  /** What the command is given. */
  readonly rest: readonly string[]
}

/** Options that may stand before the command; true when a value follows. `--version` and help are asked for there. */
const early: Readonly<Record<string, boolean>> = {
  '-h': false,
  '--help': false,
  '--quiet': false,
  '--no-color': false,
  '--debug': false,
  '-n': true,
  '--namespace': true,
  '-o': true,
  '--output': true,
  '--context': true,
}

export const isLeaf = (entry: Leaf | Entry | CommandTable): entry is Leaf =>
  'load' in entry && typeof entry.load === 'function'

export function locate(words: readonly string[], root: CommandTable): Located {
  const path: string[] = []
  const options: string[] = []
  let table = root
  let own: Leaf | undefined
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    if (word.startsWith('-') && word !== '-') {
      if (word === '--version' && path.length === 0) return versionOf(root, options, words.slice(index + 1))
      if (own && !isEarly(word)) return { path, found: own, rest: [...options, ...words.slice(index)] }
      options.push(word)
      const value = words[index + 1]
      if (takesValue(word, path) && value !== undefined) {
        options.push(value)
        index++
      }
      continue
    }
    const entry = entryOf(table, word, path)
    path.push(word)
    if (!('commands' in entry)) return { path, found: entry, rest: [...options, ...words.slice(index + 1)] }
    table = entry.commands
    own = isLeaf(entry) ? entry : undefined
  }
  return { path, found: own ?? table, rest: options }
}

function versionOf(root: CommandTable, options: readonly string[], rest: readonly string[]): Located {
  const found = root.version
  if (!found || !isLeaf(found)) throw new Error('the table of commands has no version')
  return { path: ['version'], found, rest: [...options, ...rest] }
}

function nameAndValue(word: string): readonly [string, string | undefined] {
  if (!word.startsWith('--')) return [word.slice(0, 2), word.slice(2) || undefined]
  const [name = word, inline] = word.split('=', 2)
  return [name, inline]
}

const isEarly = (word: string): boolean => Object.hasOwn(early, nameAndValue(word)[0])

function takesValue(word: string, path: readonly string[]): boolean {
  const [name, inline] = nameAndValue(word)
  const known = Object.hasOwn(early, name) ? early[name] : undefined
  if (known !== undefined) return known && inline === undefined
  const where = path.length === 0 ? 'before a command' : `after "${path.join(' ')}"`
  throw new UsageError(`unknown option ${name} ${where}${didYouMean(name, [...Object.keys(early), '--version'])}`)
}

function entryOf(table: CommandTable, word: string, path: readonly string[]): Entry {
  const known = Object.entries(table).find(
    ([name, { aliases, hiddenAliases }]) => name === word || aliases?.includes(word) || hiddenAliases?.includes(word),
  )
  if (known) return known[1]
  const names = Object.entries(table).flatMap(([name, entry]) => (entry.hidden ? [] : [name, ...(entry.aliases ?? [])]))
  const what = path.length === 0 ? `unknown command "${word}"` : `unknown command "${word}" of "${path.join(' ')}"`
  throw new UsageError(`${what}${didYouMean(word, names)}`)
}

export const asksForHelpEarly = (options: readonly string[]): boolean =>
  options.some((option) => option === '-h' || option === '--help')
