// The texts of this program and of the service say "svc3"; whoever called it by its other name reads that one.
import type { CommandTable, Entry } from './command.ts'

/** Lines to copy in a text, with the name that the program was called by. */
export const asCalled = (text: string, calledAs: string, commands: CommandTable): string =>
  calledAs === 'svc3' ? text : text.replaceAll(ownLine(commands), `${calledAs} `)

const ownLine = (commands: CommandTable): RegExp =>
  new RegExp(`\\bsvc3 (?=--|(?:${Object.entries(commands).flatMap(wordsOf).join('|')})\\b)`, 'g')

const wordsOf = ([name, { aliases = [] }]: readonly [string, Entry]): string[] => [name, ...aliases]
