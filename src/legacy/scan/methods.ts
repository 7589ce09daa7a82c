// Finds the HTTP method of a call, on the line of its path or on the lines around it.
import type { Syntax } from './kinds.ts'

const verb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<![A-Za-z])(?:get|post|put|delete|del)(?![a-z])|(?:Get|Post|Put|Delete)(?![a-z])/g
/** On lines around that of the path, only forms that are methods in any language count. */
const plainVerb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<=["'.])(?:get|post|put|delete)(?=["'(])|(?<=Method)(?:Get|Post|Put|Delete)\b/g
const methodKey = /\b(?:method|verb|type)["']?\s{0,4}[:=]+>?\s{0,4}["']?(get|post|put|delete)\b/i

const methodOf = (word: string): string => (word === 'del' ? 'DELETE' : word.toUpperCase())
const commandName = /\b(?:curl|wget|Invoke-RestMethod|Invoke-WebRequest|iwr|irm)\b/i
const commandNames = new RegExp(commandName, 'gi')
const methodOption = /(?:\s-[a-zA-Z]*X[\s=]*|--request[\s=]+|--method[\s=]+|-Method\s+)["']?([A-Za-z]+|\S)/
const dataOption = /\s(?:-[a-zA-Z]*[dF]\b|--data|--form|--json|--post-(?:data|file))/
const uploadOption = /\s(?:-T|--upload-file)\b/

const getOption = /\s(?:-G|--get)\b/
/** Ends a command: a pipe, a semicolon, or the next command. */
const commandEnd = new RegExp(`\\s\\|\\s|;\\s|${commandName.source}`, 'i')

/** What a line says of methods for paths on the lines around it. */
export interface LineMethods {
  /** Lines around a path count up to this one. */
  readonly isStop: boolean
  readonly methods: ReadonlySet<string>
}

export function lineMethods(text: string, { isData }: Syntax, hasPath: boolean): LineMethods {
  if (!isData)
    return {
      isStop: hasPath || stops.test(text),
      methods: new Set(Array.from(text.matchAll(plainVerb), ([word]) => methodOf(word))),
    }
  const key = methodKey.exec(text)?.[1]
  return { isStop: hasPath, methods: new Set(key === undefined ? [] : [methodOf(key)]) }
}

/** The method of a curl, wget or PowerShell command; undefined if it is a variable. */
function methodOfCommand(command: string): string | undefined {
  const word = methodOption.exec(command)?.[1]
  if (word !== undefined) return /^(?:get|post|put|delete)$/i.test(word) ? word.toUpperCase() : undefined
  if (uploadOption.test(command)) return 'PUT'
  return dataOption.test(command) && !getOption.test(command) ? 'POST' : 'GET'
}

interface PathPosition {
  readonly text: string
  readonly index: number
  readonly at: number
  readonly end: number
}

/** How many characters before and after a path may belong to the same call, which keeps the scan of long lines linear. */
const maxReach = 2_000
/** How many lines before and after a path may belong to the same statement. */
const maxDistance = 5
const stops = /^\s*(?:$|\}\)?[;,]?$|end\b|def |func|public |private )/

/** The method of a path. On the lines around it, only methods in `possible` count. `line` is undefined beyond the text. */
export function methodAt(
  { text, index, at, end }: PathPosition,
  possible: readonly string[],
  { isProse, isData }: Syntax,
  line: (index: number) => LineMethods | undefined,
): string | undefined {
  const before = text.slice(Math.max(0, at - maxReach), at)
  const command = [...before.matchAll(commandNames)].at(-1)
  if (command) {
    const [rest = ''] = text.slice(at, at + maxReach).split(commandEnd, 1)
    return methodOfCommand(before.slice(command.index) + rest)
  }
  const direct = /\b(GET|POST|PUT|DELETE)[\s"'`:,]{1,4}$/.exec(before.slice(-20))?.[1]
  if (direct !== undefined || isProse) return direct
  const isPossible = ([word]: RegExpExecArray): boolean => possible.includes(methodOf(word))
  const nearest =
    [...before.matchAll(verb)].findLast(isPossible) ??
    [...text.slice(end, end + maxReach).matchAll(verb)].find(isPossible)
  const own = isData ? [...(line(index)?.methods ?? [])][0] : nearest && methodOf(nearest[0])
  if (own !== undefined) return own
  // Searches the nearest lines first; in data those before the path, in programs those after it.
  const open = new Set(isData ? [-1, 1] : [1, -1])
  for (let distance = 1; distance <= maxDistance; distance++)
    for (const direction of open) {
      const other = line(index + direction * distance)
      const found = [...(other?.methods ?? [])].find((each) => possible.includes(each))
      if (other === undefined || other.isStop) open.delete(direction)
      else if (found !== undefined) return found
    }
  return undefined
}
