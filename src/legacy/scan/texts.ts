// The texts of one line: string literals and shell words, joined where the line joins them. A value that is only known when
// the program runs is replaced by a mark with its name.

export interface Text {
  /** Offset in the line. */
  readonly at: number
  readonly end: number
  readonly value: string
  readonly isQuoted: boolean
}

const marked = (name: string): string => `\uE000${name}\uE001`
export const marks = /\uE000([^\uE000\uE001]*)\uE001/g

/** `${NAME}`, `#{name}`, `{{ name }}`, `\(name)`, `$(NAME)`, `$NAME`, `%s`, `{name}` */
const insertion =
  /\$\{\{?[^{}]{0,200}\}\}?|#\{[^{}]{0,200}\}|\{\{[^{}]{0,200}\}\}|\\\([^()]{0,200}\)|\$\([\w.-]{1,100}\)|\$(?!ungrouped)(?:env:)?[A-Za-z_]\w*|\$[\d@]|%(?:[sdv@]|\(\w{1,100}\)s|[A-Z_]{1,100}%)|\{[\w.]{0,100}\}/
const insertions = new RegExp(insertion, 'g')
const name =
  /[@$]{0,2}[A-Za-z_]\w{0,80}[?!]?(?:(?:\??\.|::|->)[A-Za-z_]\w{0,80}){0,8}(?:\([^()"'`\s]{0,100}\))?(?![\w/:=%-])/
interface Token {
  readonly kind: 'blank' | 'quote' | 'key' | 'insertion' | 'join' | 'name' | 'word' | 'other'
  readonly form: RegExp
}

/** The first that matches counts. */
const tokens: readonly Token[] = [
  { kind: 'blank', form: /(?:\s|\\\r?\n)+/y },
  { kind: 'quote', form: /(?:\b[fFrRbBuU]{1,2}|[$@]{1,2})?["'`]/y },
  { kind: 'key', form: /[\w-]{1,40}[=:](?=[fFrRbBuU$@]{0,2}["'`])/y },
  { kind: 'insertion', form: new RegExp(insertion, 'y') },
  { kind: 'join', form: /\+(?!=)|\.\.?(?=\s*["'$])|&(?=\s)/y },
  { kind: 'name', form: new RegExp(name, 'y') },
  { kind: 'word', form: /(?:[\w/:=?.@%~-]|\\\/|\+(?!\s)|&(?=\w))+/y },
  { kind: 'other', form: /\\.|[()<>|*^!,;[\]}]+|./sy },
]
const isPiece = new Set<Token['kind']>(['quote', 'insertion', 'name', 'word'])

/** The kind of the token at `at`, and where it ends. */
function tokenAt(line: string, at: number): [kind: Token['kind'], end: number] {
  for (const { kind, form } of tokens) {
    form.lastIndex = at
    if (form.test(line)) return [kind, form.lastIndex]
  }
  return ['other', at + 1]
}

/** Returns the name that an expression refers to, such as `endpoint` for `this.endpoint` and `@endpoint`. */
function nameOf(expression: string): string {
  if (/^\w+$/.test(expression)) return expression
  const [plain = ''] = expression.replace(/^\W+/, '').split(/[()}\s]|:[-?=+]/, 1)
  return (/^[\w.:>?-]+$/.test(plain) ? /(?<!\w)\w+$/ : /\w+/).exec(plain)?.[0] ?? ''
}

/** Replaces insertions by marks. */
const withMarks = (literal: string): string =>
  literal.replaceAll('\\/', '/').replaceAll(insertions, (each) => marked(nameOf(each)))

const maxDepth = 4

/** The texts of `line` in order. `comment` starts a comment after a blank. */
export function textsOf(line: string, comment: string | undefined, offset = 0, depth = 0): Text[] {
  const texts: Text[] = []
  let current: { at: number; end: number; value: string; isQuoted: boolean } | undefined
  let isJoined = false
  const finish = (): void => {
    if (current !== undefined) texts.push(current)
    current = undefined
  }
  const add = (at: number, end: number, value: string, isQuoted: boolean): void => {
    if (current === undefined) current = { at: offset + at, end: offset + end, value, isQuoted }
    else {
      current.value += value
      current.end = offset + end
      current.isQuoted ||= isQuoted
    }
  }
  for (let at = 0, wasBlank = true; at < line.length; ) {
    if (wasBlank && comment !== undefined && line.startsWith(comment, at)) break
    const start = at
    const [kind, tokenEnd] = tokenAt(line, at)
    at = tokenEnd
    // Adjacent pieces, and pieces around a joining operator, are one text.
    if (isPiece.has(kind) && wasBlank && !isJoined) finish()
    wasBlank = kind === 'blank'
    if (kind === 'quote') {
      const [inner, end] = quoted(line, at, line[at - 1] ?? '')
      if (/\s/.test(inner.replaceAll(insertions, ''))) {
        finish()
        if (depth < maxDepth) texts.push(...textsOf(inner, undefined, offset + at, depth + 1))
      } else add(start, end, withMarks(inner), true)
      at = end
    } else if (kind === 'insertion' || kind === 'name') add(start, at, marked(nameOf(line.slice(start, at))), false)
    else if (kind === 'word' && !(current?.isQuoted && line[start] === '.'))
      add(start, at, withMarks(line.slice(start, at)), false)
    else if (kind !== 'blank' && kind !== 'join') finish()
    if (kind !== 'blank') isJoined = kind === 'join'
  }
  finish()
  return texts
}

/** The text up to the closing quote, or to the end of the line. */
function quoted(line: string, at: number, quote: string): [inner: string, end: number] {
  for (let end = at; end < line.length; end++) {
    if (line[end] === '\\') end += 1
    else if (line[end] === quote) return [line.slice(at, end), end + 1]
  }
  return [line.slice(at), line.length]
}
