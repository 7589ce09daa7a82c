// Finds the HTTP method of a call, on the line of its path or on the lines around it.
import type { Syntax } from './kinds.ts'

const verb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<![A-Za-z])(?:get|post|put|delete|del)(?![a-z])|(?:Get|Post|Put|Delete)(?![a-z])/g
/** On lines around that of the path, only forms that are methods in any language count. */
const plainVerb =
  /(?<![A-Z])(?:GET|POST|PUT|DELETE)(?![A-Z])|(?<=["'.])(?:get|post|put|delete)(?=["'(])|(?<=Method)(?:Get|Post|Put|Delete)\b/g
const methodKey = /\b(?:method|verb|type)["']?\s{0,4}[:=]+>?\s{0,4}["']?(get|post|put|delete)\b/i

const methodOf = (word: string): string => (word === 'del' ? 'DELETE' : word.toUpperCase())
const inText = (text: string, form: RegExp): string[] => [...text.matchAll(form)].map(([word]) => methodOf(word))

const commands = /\b(?:curl|wget|Invoke-RestMethod|Invoke-WebRequest|iwr|irm)\b/gi
const methodOption = /(?:\s-[a-zA-Z]*X[\s=]*|--request[\s=]+|--method[\s=]+|-Method\s+)["']?([A-Za-z]+|\S)/
const dataOption = /\s(?:-[a-zA-Z]*[dF]\b|--data|--form|--json|--post-(?:data|file))/
const uploadOption = /\s(?:-T|--upload-file)\b/

/** Finds the curl, wget or PowerShell command at `at`. Its method is undefined if that is a variable. */
function methodOfCommand(line: string, at: number): { readonly method: string | undefined } | undefined {
  const starts = Array.from(line.matchAll(commands), ({ index }) => index)
  const start = starts.findLast((index) => index < at)
  if (start === undefined) return undefined
  const next = starts.find((index) => index > at) ?? line.length
  const pipe = line.slice(at, next).search(/\s\|\s|;\s/)
  const command = line.slice(start, pipe === -1 ? next : at + pipe)
  const [, word] = methodOption.exec(command) ?? []
  if (word !== undefined) return { method: /^(?:get|post|put|delete)$/i.test(word) ? word.toUpperCase() : undefined }
  if (uploadOption.test(command)) return { method: 'PUT' }
  return { method: dataOption.test(command) && !/\s(?:-G|--get)\b/.test(command) ? 'POST' : 'GET' }
}

interface PathPosition {
  readonly lines: readonly { readonly text: string }[]
  readonly index: number
  readonly at: number
  readonly end: number
}

/** How many lines before and after a path may belong to the same statement. */
const maxDistance = 5
const stops = /^\s*(?:$|\}\)?[;,]?$|end\b|def |func|public |private )/

/** The method of a path. On the lines around it, only methods in `possible` count. */
export function methodAt(
  position: PathPosition,
  possible: readonly string[],
  syntax: Syntax,
  hasPath: (index: number) => boolean,
) {
  const line = position.lines[position.index]?.text ?? ''
  const before = line.slice(0, position.at)
  const command = methodOfCommand(line, position.at)
  if (command) return command.method
  const direct = /\b(GET|POST|PUT|DELETE)[\s"'`:,]{1,4}$/.exec(before.slice(-20))?.[1]
  if (direct !== undefined || syntax.isProse) return direct
  if (!syntax.isData) {
    const ofLine = [...inText(before, verb).reverse(), ...inText(line.slice(position.end), verb)]
    const fitting = ofLine.find((each) => possible.includes(each))
    if (fitting !== undefined) return fitting
  } else if (methodKey.test(line)) return methodKey.exec(line)?.[1]?.toUpperCase()
  return around(position, possible, syntax, hasPath)
}

/** Searches the nearest lines first; in data those before the path, in programs those after it. */
function around(
  { lines, index }: PathPosition,
  possible: readonly string[],
  syntax: Syntax,
  hasPath: (index: number) => boolean,
) {
  const open = new Set(syntax.isData ? [-1, 1] : [1, -1])
  for (let distance = 1; distance <= maxDistance; distance++)
    for (const direction of open) {
      const text = lines[index + direction * distance]?.text
      if (text === undefined || hasPath(index + direction * distance) || (!syntax.isData && stops.test(text)))
        open.delete(direction)
      else {
        const methods = syntax.isData ? [methodKey.exec(text)?.[1]?.toUpperCase()] : inText(text, plainVerb)
        const fitting = methods.find((each) => each !== undefined && possible.includes(each))
        if (fitting !== undefined) return fitting
      }
    }
  return undefined
}
