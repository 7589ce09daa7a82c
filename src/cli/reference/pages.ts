// Every command as data for docs/cli.md and the man pages. Not part of the program: `npm run generate` loads it.

import type { Command, CommandTable, Entry } from '../command.ts'
import { commands } from '../commands/index.ts'
import { isLeaf } from '../line/locate.ts'
import { usageOf } from '../line/parse.ts'

export interface Page {
  /** Without the program's name. */
  readonly words: readonly string[]
  readonly entry: Entry
  /** None for a group that does nothing by itself. */
  readonly command: Command | undefined
  /** How it is called. */
  readonly usage: string
}

export async function pagesOf(table: CommandTable = commands, path: readonly string[] = []): Promise<Page[]> {
  const pages: Page[] = []
  for (const [name, entry] of Object.entries(table)) {
    if (entry.hidden) continue
    const words = [...path, name]
    const command = isLeaf(entry) ? (await entry.load()).command : undefined
    const line = ['svc3', ...words].join(' ')
    const usage = command ? usageOf(line, command.arguments) : `${line} COMMAND [OPTIONS]`
    pages.push({ words, entry, command, usage })
    if ('commands' in entry) pages.push(...(await pagesOf(entry.commands, words)))
  }
  return pages
}

export interface Fact {
  readonly name: string
  readonly text: string
}

export const environment: readonly Fact[] = [
  { name: 'SVC3_API_URL', text: 'Address of the service; goes before the context in use' },
  { name: 'SVC3_TOKEN', text: 'Token to send; goes before a stored one' },
  { name: 'SVC3_CONTEXT', text: 'Configured context to work with, as --context' },
  { name: 'SVC3_DEFAULT_NAMESPACE', text: 'Namespace where none is named; ORKA_DEFAULT_NAMESPACE is its other name' },
  { name: 'SVC3_FINGERPRINT', text: 'Accept only a server whose public key has this fingerprint' },
  { name: 'SVC3_DATA', text: 'Folder of the local service, as --data of "dev" and "server"' },
  { name: 'SVC3_DEBUG', text: 'Anything: as --debug' },
  { name: 'XDG_CONFIG_HOME', text: 'The configuration is svc3/config.json in it; ~/.config where it is not set' },
  { name: 'XDG_CACHE_HOME', text: 'Completion keeps names in svc3/names.json in it for seconds; ~/.cache otherwise' },
  { name: 'NO_COLOR', text: 'Anything: no colours' },
  { name: 'FORCE_COLOR', text: 'Colours also on a terminal that calls itself dumb; 0: none. A pipe never gets any' },
]

export const exits: readonly Fact[] = [
  { name: '0', text: 'Done' },
  { name: '1', text: 'Failed' },
  { name: '2', text: 'Wrong usage: nothing was sent' },
  { name: '3', text: 'Not authenticated; the text contains "Unauthorized"' },
  { name: '4', text: 'Forbidden' },
  { name: '5', text: 'Not found; the text contains "not found"' },
  { name: '6', text: 'Conflict: it exists already, or is in a state that does not allow this' },
  { name: '7', text: 'Timed out' },
  { name: '130', text: 'Interrupted by Ctrl-C: the waiting ends, what was begun goes on' },
]

export const output: readonly string[] = [
  'Standard output is the answer, standard error the conversation: progress, notes, warnings, errors.',
  'On a terminal tables are aligned and cut to its width, and times read "2 h ago". In a pipe columns are separated by tabs, and times and sizes are exact.',
  'With -o json the answer is an array, also of one record and of none, and nothing else is written to either stream.',
  'With --watch there is one line for each change.',
]

export const precedence =
  'The service is the one of --context, else of SVC3_API_URL, else of SVC3_CONTEXT, else of the context in use ("svc3 config set"), else the one that runs from the same checkout. The namespace is that of -n, else of SVC3_DEFAULT_NAMESPACE, else of the context, else svc-default.'
