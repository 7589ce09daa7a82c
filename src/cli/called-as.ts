// The texts of this program and of the service have lines to paste that begin with "svc3" and name the namespace. Here
// they become what this caller would type.
import type { CommandEntry, CommandTable } from './command.ts'
import { chooseNamespace, findConnection } from './connect/connection.ts'
import type { Host } from './host.ts'

/** The text, its lines beginning as this program was called, and without a namespace that is the default anyway. */
export function asCalled(text: string, host: Host, commands: CommandTable): string {
  const line = ownLine(commands)
  if (text.search(line) < 0) return text
  return withoutDefault(text, host).replaceAll(line, () => `${host.typedAs} `)
}

const ownLine = (commands: CommandTable): RegExp =>
  new RegExp(`(?<![\\w/.-])svc3 (?=--|(?:${Object.entries(commands).flatMap(wordsOf).join('|')})\\b)`, 'g')

const wordsOf = ([name, { aliases = [] }]: readonly [string, CommandEntry]): string[] => [name, ...aliases]

function withoutDefault(text: string, host: Host): string {
  if (!text.includes(' -n ')) return text
  try {
    const usual = chooseNamespace(host, undefined, findConnection(host))
    return text.replaceAll(/ -n ([\w-]+)/g, (words, namespace) => (namespace === usual ? '' : words))
  } catch {
    return text
  }
}
