// By which method a path is called, as far as the program shows it near by: verbs of the usual libraries and tools.

export interface Place {
  readonly line: number
  readonly column: number
}

/** Each has one group, the method in any spelling. Those that say it plainest come first. */
const verbs: readonly RegExp[] = [
  /(?:-[a-zA-Z]*X|--request|--method)[\s=]*["']?(GET|POST|PUT|DELETE)\b/gi,
  /-Method\s+["']?(Get|Post|Put|Delete)\b/gi,
  /\bmethod["']?\s*(?:[:=]|=>)\s*["'`]?(?:http\.Method|HttpMethod\.)?(GET|POST|PUT|DELETE)\b/gi,
  /\bhttp\.Method(Get|Post|Put|Delete)\b/g,
  /\bHttpMethod\.(GET|POST|PUT|DELETE|Get|Post|Put|Delete)\b/g,
  /\bHttp(Get|Post|Put|Delete)\b/g,
  /\bNet::HTTP::(Get|Post|Put|Delete)\b/g,
  /["'`](GET|POST|PUT|DELETE)["'`]/g,
  /\.(GET|POST|PUT|DELETE)\(/g,
  /[\w)\]$>]\.(get|post|put|delete|del|Get|Post|Put|Delete)(?:ForObject|ForEntity|Async|_async|Json|JSON|Form)?!?\s*(?:\(|<|\s["':])/g,
  /(?:->|::)(get|post|put|delete)\s*\(/g,
  /\bhttps?\s+(?:--\S+\s+)*(GET|POST|PUT|DELETE)\b/g,
  /(?:^|[\s"'`])(GET|POST|PUT|DELETE)\s+\S*\//g,
]

const methodOf = (word: string): string => (word.toLowerCase() === 'del' ? 'DELETE' : word.toUpperCase())

interface Verb {
  readonly at: number
  readonly method: string
}

function verbsIn(text: string): Verb[] {
  return verbs
    .flatMap((form) => [...text.matchAll(form)].map((match) => ({ at: match.index, method: methodOf(match[1] ?? '') })))
    .toSorted((a, b) => a.at - b.at)
}

export function methodAt(kind: string, lines: readonly string[], place: Place): string | undefined {
  const command = commandAt(lines, place)
  if (command !== undefined) return methodOfCommand(command)
  return methodInProgram(lines, place, kind)
}

/** Whether the line itself makes a request. */
export const isCallAt = (lines: readonly string[], place: Place): boolean =>
  commandAt(lines, place) !== undefined || verbsIn(lines[place.line - 1] ?? '').length > 0

const tool = /\b(?:curl|wget)\b(?!["':.])/g

/** The words of the curl or wget that the place belongs to, over continued lines. */
function commandAt(lines: readonly string[], { line, column }: Place): string | undefined {
  const isContinued = (text: string | undefined): boolean => text !== undefined && /(?:\\|\^|`)\s*$/.test(text)
  let first = line - 1
  while (first > 0 && line - first < 30 && isContinued(lines[first - 1])) first--
  let last = line - 1
  while (last < lines.length - 1 && last - line < 30 && isContinued(lines[last])) last++
  const before = lines.slice(first, line - 1).join('\n')
  const text = lines.slice(first, last + 1).join('\n')
  const at = before.length + (before === '' ? 0 : 1) + column - 1
  const starts = [...text.matchAll(tool)].map((match) => match.index)
  const start = starts.findLast((each) => each <= at)
  if (start === undefined) return undefined
  // A pipe or the next command ends it; what stands in quotes may have either.
  const end = starts.find((each) => each > at) ?? text.length
  return text.slice(start, end)
}

function methodOfCommand(command: string): string {
  const [said] = verbsIn(command.replaceAll(/["'`](?=(?:GET|POST|PUT|DELETE)["'`])/g, ''))
  const plain = /(?:-[a-zA-Z]*X|--request|--method)[\s=]*["']?(GET|POST|PUT|DELETE)\b/i.exec(command)?.[1]
  if (plain !== undefined) return plain.toUpperCase()
  if (/\s(?:-G|--get)\b/.test(command)) return 'GET'
  if (
    /\s(?:-[a-zA-Z]*d|--data\S*|--json|-F|--form\S*|--post-data|--post-file|--body-data)(?=[\s='"@{]|$)/.test(command)
  )
    return 'POST'
  if (/\s(?:-T|--upload-file)\b/.test(command)) return 'PUT'
  return said && /^wget/.test(command) ? said.method : 'GET'
}

const reach = { ahead: 8, back: 5, use: 25 } as const

function methodInProgram(lines: readonly string[], { line, column }: Place, kind: string): string | undefined {
  const own = lines[line - 1] ?? ''
  // With the slash that the path begins with: `DELETE /path` is a request as people write it down.
  const before = verbsIn(own.slice(0, column)).at(-1)
  if (before) return before.method
  const after = verbsIn(own.slice(column - 1))[0]
  if (after) return after.method
  // In YAML what belongs together follows; in programs a call begins before its address.
  const around =
    kind === 'shell' ? (ahead(lines, line) ?? back(lines, line)) : (back(lines, line) ?? ahead(lines, line))
  return methodOfVariable(lines, line) ?? around
}

/** `url = base + "/path"`, and further down `post(url)`. */
function methodOfVariable(lines: readonly string[], line: number): string | undefined {
  const name = /(?:^|[\s(])([A-Za-z_]\w*)\s*(?::=|=)(?!=)/.exec(lines[line - 1] ?? '')?.[1]
  if (name === undefined) return undefined
  const isUse = new RegExp(`\\b${name}\\b`)
  const isAssigned = new RegExp(`\\b${name}\\s*(?::=|=)(?!=)`)
  for (let at = line; at < Math.min(lines.length, line + reach.use); at++) {
    const text = lines[at] ?? ''
    if (isAssigned.test(text)) return undefined
    if (!isUse.test(text)) continue
    const [verb] = verbsIn(text)
    if (verb) return verb.method
    const found = ahead(lines, at + 1)
    if (found) return found
  }
  return undefined
}

/** What belongs to the same statement: up to an empty line or another path. */
function ahead(lines: readonly string[], line: number): string | undefined {
  for (let at = line; at < Math.min(lines.length, line + reach.ahead); at++) {
    const text = lines[at] ?? ''
    if (text.trim() === '' || /\/resources\/|^\s*-\s/.test(text)) return undefined
    const [verb] = verbsIn(text)
    if (verb) return verb.method
  }
  return undefined
}

function back(lines: readonly string[], line: number): string | undefined {
  for (let at = line - 2; at >= Math.max(0, line - 1 - reach.back); at--) {
    const text = lines[at] ?? ''
    if (text.trim() === '' || /\/resources\//.test(text) || /[;{}]\s*$|^\s*-\s/.test(text)) break
    const verb = verbsIn(text).at(-1)
    if (verb) return verb.method
  }
  return undefined
}
