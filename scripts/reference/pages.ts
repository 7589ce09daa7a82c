// All commands as data for docs/reference/cli and the man pages. Loaded by `npm run generate` only.

import type { Command, CommandEntry, CommandTable } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands/index.ts'
import { isLeaf } from '../../src/cli/line/locate.ts'
import { usageLine } from '../../src/cli/line/parse.ts'

export interface ManualPage {
  /** Without the name of the program. */
  readonly words: readonly string[]
  readonly entry: CommandEntry
  /** Undefined for a group that is not a command. */
  readonly command: Command | undefined
  readonly usage: string
}

export async function pagesOf(table: CommandTable = commands, path: readonly string[] = []): Promise<ManualPage[]> {
  const pages: ManualPage[] = []
  for (const [name, entry] of Object.entries(table)) {
    if (entry.hidden) continue
    const words = [...path, name]
    const command = isLeaf(entry) ? (await entry.load()).command : undefined
    const line = ['svc3', ...words].join(' ')
    const usage = command ? usageLine(line, command.arguments) : `${line} COMMAND [OPTIONS]`
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
  { name: 'SVC3_API_URL', text: 'Address of the service' },
  { name: 'SVC3_TOKEN', text: 'Token to send, instead of a stored one' },
  { name: 'SVC3_CONTEXT', text: 'Configured context to use, as --context' },
  { name: 'SVC3_DEFAULT_NAMESPACE', text: 'Default namespace; ORKA_DEFAULT_NAMESPACE works, too' },
  { name: 'SVC3_FINGERPRINT', text: 'Accept only a server whose public key has this fingerprint' },
  { name: 'SVC3_DATA', text: 'Data folder of the local service, as --data' },
  { name: 'SVC3_DEBUG', text: 'If set, as --debug' },
  { name: 'XDG_CONFIG_HOME', text: 'Folder of svc3/config.json (default ~/.config)' },
  {
    name: 'XDG_CACHE_HOME',
    text: 'Folder of svc3/revisions.json, the latest revision seen of each service (default ~/.cache)',
  },
  { name: 'NO_COLOR', text: 'If set, no colours' },
  { name: 'FORCE_COLOR', text: 'Colours on a dumb terminal, too; 0 for none. Pipes never get any' },
]

export const exits: readonly Fact[] = [
  { name: '0', text: 'Done' },
  { name: '1', text: 'Failed' },
  { name: '2', text: 'Wrong usage, or a value that the command line or the service found to be invalid' },
  { name: '3', text: 'Not authenticated; the message contains "Unauthorized"' },
  { name: '4', text: 'Forbidden' },
  { name: '5', text: 'Not found; the message contains "not found"' },
  { name: '6', text: 'Conflict: the name is taken, or the state does not allow it' },
  { name: '7', text: 'Timed out' },
  { name: '130', text: 'Interrupted by Ctrl-C; the operation continues on the server' },
]

export const output: readonly string[] = [
  'The answer goes to standard output; progress, notes, warnings and errors go to standard error.',
  'On a terminal, tables are aligned and fit its width, and times read "2 h ago". In a pipe, columns are separated by tabs, and times and sizes are exact.',
  '-o json prints an array, also for one record or none, and nothing else on either stream.',
  '--watch prints every change.',
]

export const precedence =
  'svc3 uses the service of --context, else of SVC3_API_URL, SVC3_DATA, SVC3_CONTEXT, the current context (svc3 config use-context), else the one that runs from the same checkout. It uses the namespace of -n, else of SVC3_DEFAULT_NAMESPACE, the context, else svc-default.'
