// Prints help for the program, a group, or a command, which is loaded only then.
import type { CommandTable } from '../command.ts'
import type { Host } from '../host.ts'
import { commandHelp, groupHelp, programHelp, programSummary } from './help.ts'
import { isLeaf, type Located, locate } from './locate.ts'

export async function showHelp(host: Host, table: CommandTable, { path, found }: Located): Promise<void> {
  const { calledAs, stdout } = host
  if (isLeaf(found)) {
    const { command } = await found.load()
    stdout.write(commandHelp(calledAs, path, command, found))
  } else if (path.length === 0) stdout.write(programHelp(calledAs, found))
  else stdout.write(groupHelp(calledAs, path, found, summaryOf(table, path)))
}

export const showHelpFor = (host: Host, table: CommandTable, words: readonly string[]): Promise<void> =>
  showHelp(host, table, locate(words, table))

/** Groups stand at the root of the table. */
function summaryOf(table: CommandTable, [word]: readonly string[]): string {
  if (word === undefined) return programSummary
  const group = Object.entries(table).find(([name, entry]) => name === word || entry.aliases?.includes(word))
  return group?.[1].summary ?? programSummary
}
