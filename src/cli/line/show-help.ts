// Prints help for the program, a group, or a command.
import { spelledAs } from '../../rules/names.ts'
import type { CommandTable } from '../command.ts'
import type { Host } from '../host.ts'
import { commandHelp, groupHelp, programHelp, programSummary } from './help.ts'
import { isLeaf, type Located, locate } from './locate.ts'

export async function showHelp(host: Host, table: CommandTable, { path, found }: Located): Promise<void> {
  // Examples are pasted, so they begin as the user typed the program, except for long absolute paths.
  const calledAs = host.typedAs.startsWith('/') ? host.calledAs : host.typedAs
  const write = (help: string): void => host.stdout.write(spelledAs(calledAs, help))
  if (isLeaf(found)) {
    const { command } = await found.load()
    write(commandHelp(calledAs, path, command, found))
  } else if (path.length === 0) write(programHelp(calledAs, found))
  else write(groupHelp(calledAs, path, found, summaryOf(table, path)))
}

export const showHelpFor = (host: Host, table: CommandTable, words: readonly string[]): Promise<void> =>
  showHelp(host, table, locate(words, table))

/** The summary of the group that the words name. */
function summaryOf(table: CommandTable, path: readonly string[]): string {
  let summary = programSummary
  let inside: CommandTable = table
  for (const word of path) {
    const entry = Object.entries(inside).find(([name, { aliases }]) => name === word || aliases?.includes(word))?.[1]
    if (!entry || !('commands' in entry)) break
    summary = entry.summary
    inside = entry.commands
  }
  return summary
}
