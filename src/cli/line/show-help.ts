// Prints help for a place in the table: the program, a group, or a command, which only then is loaded.
import { commands } from '../commands/index.ts'
import type { Host } from '../host.ts'
import { commandHelp, groupHelp, programHelp, programSummary } from './help.ts'
import { isLeaf, type Located, locate } from './locate.ts'

export async function showHelp(host: Host, { path, found }: Located): Promise<void> {
  const { calledAs, stdout } = host
  if (isLeaf(found)) {
    const { command } = await found.load()
    stdout.write(commandHelp(calledAs, path, command, found))
  } else if (path.length === 0) stdout.write(programHelp(calledAs, found))
  else stdout.write(groupHelp(calledAs, path, found, summaryOf(path)))
}

export const showHelpFor = (host: Host, words: readonly string[]): Promise<void> => showHelp(host, locate(words))

/** Groups stand at the root of the table. */
function summaryOf([word]: readonly string[]): string {
  if (word === undefined) return programSummary
  const group = Object.entries(commands).find(([name, entry]) => name === word || entry.aliases?.includes(word))
  return group?.[1].summary ?? programSummary
}
