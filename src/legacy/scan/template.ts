// A text as a program puts it together: what it says literally, and names where something is put in when it runs.

/** A variable, a constant or a call in a text. Without a name: an expression that nothing else can refer to. */
interface Name {
  readonly name: string
}

export type Part = string | Name
export type Template = readonly Part[]

/** Longer ones are no addresses. It also bounds what constants that refer to each other can grow to. */
const maxLength = 1_000
const maxParts = 40

export const isName = (part: Part | undefined): part is Name => typeof part === 'object'

export function joined(parts: readonly Part[]): Template {
  const merged: Part[] = []
  for (const part of parts) {
    const last = merged.at(-1)
    if (typeof part === 'string' && typeof last === 'string') merged[merged.length - 1] = last + part
    else if (part !== '') merged.push(part)
  }
  return merged
}

export const isTooLong = (parts: Template): boolean =>
  parts.length > maxParts ||
  parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : 1), 0) > maxLength

/** What it says literally. */
export const textOf = (parts: Template): string => parts.map((part) => (isName(part) ? '' : part)).join('')
/** A text that nothing is put into. */
export const wordOf = (parts: Template): string => (typeof parts[0] === 'string' && parts.length === 1 ? parts[0] : '')

const chain = /^[$@]{0,2}[A-Za-z_][\w$]*(?:(?:\??\.|::|->|&\.)[$@]?[A-Za-z_][\w$]*)*[?!]?(?:\(\))?$/
const owner =
  /^(?:this|self|process\.env|env|ENV|params|var|local|vars|variables|secrets|inputs|config|settings|global)(?:\.|->|::)/

/** `this.endpoint`, `@endpoint` and `${endpoint}` are the same; what is no plain name has none. */
export function nameOf(expression: string): string {
  // Most are plain: it is asked of every word.
  if (expression.length <= 100 && /^[A-Za-z_]\w*$/.test(expression)) return expression
  const trimmed = expression.slice(0, 300).trim()
  const text = /^\w[\w.-]*\w$/.test(trimmed) ? trimmed.replaceAll('-', '_') : trimmed
  if (text.length > 100 || !chain.test(text)) return plainNameIn(text)
  return text.replace(/[?!]?(?:\(\))?$/, '').replace(/^[$@]+/, '').replace(owner, '').replaceAll(/\??\.|::|->|&\./g, '.').replace(/^[$@]+/, '')
} // biome-ignore format: one line each

/** `${NAME:-default}`, `ENV["NAME"]`, `name | filter`. */
function plainNameIn(text: string): string {
  if (text.length > 200) return ''
  const [, first] = /^[$@]?(\w+)\s*(?::?[-=?+%#]|%%|##|\||\/)/.exec(text) ?? []
  const [, key] =
    /^[\w.:]*(?:ENV|env|environ|getenv|config|settings)(?:\.fetch|\.get)?[[(]\s*["']?([\w-]+)["']?/.exec(text) ?? []
  return first ?? key ?? ''
}

/** Marks a name in a text that is read as a script: quotes do not keep a program from putting it in. */
export const inserted = (name: string): string => `\uE000${name}\uE001`
const insertion =
  /\uE000([^\uE000\uE001]*)\uE001|\$\(([A-Za-z_][\w.-]{0,100})\)|\$?\{\{\s{0,4}([\w.\-$]{0,100})\s{0,4}\}\}/

/** A text in which only such names are put in, and those that come before the shell: of make, and of pipelines. */
export function withInsertions(text: string): Part[] {
  return text.split(insertion).flatMap((piece, index): Part[] => {
    if (index % 4 === 0) return [piece]
    return piece === undefined ? [] : [{ name: nameOf(piece) }]
  })
}

/** The last part of a name: `c.Endpoint` → `Endpoint`. */
export const lastOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1)
