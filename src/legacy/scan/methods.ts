// Finds the HTTP method of a call, on the line of its path or on the lines around it.
import type { Syntax } from './kinds.ts'

const verb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<![A-Za-z])(?:get|post|put|delete|del)(?![a-z])|(?:Get|Post|Put|Delete)(?![a-z])/g
/** On lines around that of the path, only forms that are methods in any language count. */
const plainVerb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<=["'.])(?:get|post|put|delete)(?=["'(])|(?<=Method)(?:Get|Post|Put|Delete)\b/g
const methodKey = /\b(?:method|verb|type)["']?\s{0,4}[:=]+>?\s{0,4}["']?(get|post|put|delete)\b/i

const methodOf = (word: string): string => (word === 'del' ? 'DELETE' : word.toUpperCase())
const commandNames = /\b(?:curl|wget|Invoke-RestMethod|Invoke-WebRequest|iwr|irm)\b/gi
const methodOption = /(?:\s-[a-zA-Z]*X[\s=]*|--request[\s=]+|--method[\s=]+|-Method\s+)["']?([A-Za-z]+|\S)/
const dataOption = /\s(?:-[a-zA-Z]*[dF]\b|--data|--form|--json|--post-(?:data|file))/
const uploadOption = /\s(?:-T|--upload-file)\b/

const getOption = /\s(?:-G|--get)\b/

interface Command {
  readonly start: number
  readonly method: RegExpExecArray | null
  /** Where the first option of each kind is, if there is one. */
  readonly upload: number
  readonly data: number
  readonly get: number
}

/** What a line says of methods. Found once for all paths of the line, of which there may be thousands. */
export interface LineMethods {
  /** Lines around a path count up to this one. */
  readonly isStop: boolean
  readonly starts: readonly number[]
  readonly commands: readonly Command[]
  /** The ends of commands: pipes and semicolons. */
  readonly ends: readonly number[]
  readonly verbs: ReadonlyMap<string, readonly number[]>
  /** The methods that count for a path on another line. */
  readonly plain: ReadonlySet<string>
}

export function lineMethods(text: string, { isData }: Syntax, hasPath: boolean): LineMethods {
  const isStop = hasPath || (!isData && stops.test(text))
  const key = isData && methodKey.exec(text)?.[1]?.toUpperCase()
  if (isData) return { ...none, isStop, ...commandsOf(text), plain: new Set(key ? [key] : []) }
  const verbs = Map.groupBy(text.matchAll(verb), ([word]) => methodOf(word))
  const plain = new Set(Array.from(text.matchAll(plainVerb), ([word]) => methodOf(word)))
  const at = new Map([...verbs].map(([method, found]) => [method, found.map(({ index }) => index)]))
  return { isStop, ...commandsOf(text), verbs: at, plain }
}

const none: LineMethods = { isStop: false, starts: [], commands: [], ends: [], verbs: new Map(), plain: new Set() }

function commandsOf(text: string): Pick<LineMethods, 'starts' | 'commands' | 'ends'> {
  const starts = Array.from(text.matchAll(commandNames), ({ index }) => index)
  if (starts.length === 0) return { starts, commands: [], ends: [] }
  const found = starts.map((start, index): Command => {
    const command = text.slice(start, starts[index + 1])
    const [upload = 0, data = 0, get = 0] = [uploadOption, dataOption, getOption].map((option) =>
      command.search(option),
    )
    return { start, method: methodOption.exec(command), upload, data, get }
  })
  return { starts, commands: found, ends: Array.from(text.matchAll(/\s\|\s|;\s/g), ({ index }) => index) }
}

/** How many of the sorted numbers are less than `limit`. */
export function countBelow(sorted: readonly number[], limit: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? limit) < limit) low = middle + 1
    else high = middle
  }
  return low
}

/** Finds the curl, wget or PowerShell command at `at`. Its method is undefined if that is a variable. */
function methodOfCommand(
  { starts, commands, ends }: LineMethods,
  at: number,
): { readonly method: string | undefined } | undefined {
  const command = commands[countBelow(starts, at) - 1]
  if (command === undefined) return undefined
  const length = (ends[countBelow(ends, at)] ?? Number.POSITIVE_INFINITY) - command.start
  const has = (place: number): boolean => place !== -1 && place < length
  const { method, upload, data, get } = command
  if (method !== null && has(method.index)) {
    const word = method[1] ?? ''
    return { method: /^(?:get|post|put|delete)$/i.test(word) ? word.toUpperCase() : undefined }
  }
  if (has(upload)) return { method: 'PUT' }
  return { method: has(data) && !has(get) ? 'POST' : 'GET' }
}

interface PathPosition {
  readonly text: string
  readonly index: number
  readonly at: number
  readonly end: number
}

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
  const own = line(index) ?? none
  const command = methodOfCommand(own, at)
  if (command) return command.method
  const direct = /\b(GET|POST|PUT|DELETE)[\s"'`:,]{1,4}$/.exec(text.slice(Math.max(0, at - 20), at))?.[1]
  if (direct !== undefined || isProse) return direct
  const fitting = isData ? [...own.plain][0] : nearest(own.verbs, possible, at, end)
  if (fitting !== undefined) return fitting
  // Searches the nearest lines first; in data those before the path, in programs those after it.
  const open = new Set(isData ? [-1, 1] : [1, -1])
  for (let distance = 1; distance <= maxDistance; distance++)
    for (const direction of open) {
      const other = line(index + direction * distance)
      const found = [...(other?.plain ?? [])].find((each) => possible.includes(each))
      if (other === undefined || other.isStop) open.delete(direction)
      else if (found !== undefined) return found
    }
  return undefined
}

/** The last of the possible methods before a path, or else the first one after it. */
function nearest(verbs: LineMethods['verbs'], possible: readonly string[], at: number, end: number) {
  const places = possible.flatMap((method) => {
    const found = verbs.get(method) ?? []
    const [before = -1, after] = [found[countBelow(found, at) - 1], found[countBelow(found, end)]]
    if (before !== -1) return [{ method, rank: at - before }]
    return after === undefined ? [] : [{ method, rank: at + after }]
  })
  return places.toSorted((a, b) => a.rank - b.rank)[0]?.method
}
