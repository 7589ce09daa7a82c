// The kinds of files, by name and content, and the syntax of their comments.

type Kind = 'binary' | 'log' | 'text'

const logName = /\.(?:log|ndjson|jsonl)(?:\.\d+)?$|(?:^|[/\\])(?:access|error)[._-]?log(?:\.\d+)?$/i
const requestLine = /"(?:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) \S{1,2000} HTTP\/[\d.]{1,5}" \d{3}\b/
const jsonLine = /^\{.{0,2000}?"(?:method|request_method|verb|request)"\s{0,4}:\s{0,4}["{]/

/** `start` is the beginning of the file, at least a few lines. */
export function kindOf(name: string, start: string): Kind {
  if (start.includes('\0')) return 'binary'
  if (logName.test(name)) return 'log'
  const syntax = known(name)
  if (syntax !== undefined && syntax.isData === undefined) return 'text'
  const lines = start.split('\n', 5)
  return lines.some((line) => requestLine.test(line) || jsonLine.test(line)) ? 'log' : 'text'
}

export interface Syntax {
  /** Starts a comment that ends with the line. */
  readonly line?: string
  /** Delimits comments of several lines, which start at the beginning of a line. */
  readonly block?: readonly [open: string, close: string]
  /** In prose, a method counts only directly before its path. */
  readonly isProse?: true
  /** In data, a method counts only as the value of a key such as `method`. */
  readonly isData?: true
}

const syntaxes: readonly (readonly [name: RegExp, syntax: Syntax])[] = [
  [/\.(?:md|markdown|txt|rst|adoc|html?)$/i, { isProse: true, block: ['<!--', '-->'] }],
  [/\.(?:json|har|postman_collection|postman_environment)$/i, { isData: true }],
  [/\.ya?ml$/i, { isData: true, line: '#' }],
  [/\.pyi?$/i, { line: '#', block: ['"""', '"""'] }],
  [/\.psm?1$/i, { line: '#', block: ['<#', '#>'] }],
  [/\.(?:rb|rake)$/i, { line: '#', block: ['=begin', '=end'] }],
  [/\.(?:[cm]?[jt]sx?|vue|svelte|java|kts?|groovy|gradle|cs|csx|go|swift|php|c|cc|cpp|h|hpp|m|mm|rs|scala|dart)$|Jenkinsfile/i,
    { line: '//', block: ['/*', '*/'] }],
] // biome-ignore format: a table

const known = (file: string): Syntax | undefined => syntaxes.find(([name]) => name.test(file))?.[1]
export const syntaxOf = (file: string): Syntax => known(file) ?? { line: '#' }
