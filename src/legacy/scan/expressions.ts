// Texts that a program puts together: joined, formatted, or wrapped in calls that make an address of them.
import type { Language } from './languages.ts'
import type { Token } from './lex.ts'
import { isName, isTooLong, joined, lastOf, nameOf, type Part, type Template, wordOf } from './template.ts'

interface Expression {
  readonly parts: Template
  /** The token behind it. */
  readonly end: number
  /** Tokens that it is made of. */
  readonly used: readonly number[]
  /** More than a single text or name. */
  readonly isJoined: boolean
}

const keywords = new Set(['new', 'await', 'return', 'yield', 'throw', 'case', 'in', 'and', 'or', 'not', 'if', 'unless', 'else', 'do', 'then', 'when', 'typeof', 'echo', 'print', 'puts', 'raise', 'defer', 'go', 'try', 'var', 'val', 'let', 'const', 'final', 'def', 'static', 'public', 'private', 'protected', 'export', 'readonly', 'void', 'string', 'String', 'import', 'from', 'for', 'while', 'end', 'using', 'func', 'fun', 'function']) // biome-ignore format: a list
export const isKeyword = (text: string): boolean => keywords.has(text)

const formats = /^(?:sprintf|format|formatted|Format|Sprintf|string\.Format|String\.format|fmt\.Sprintf)$/
const joins =
  /^(?:urljoin|urlJoin|joinPath|JoinPath|join|Join|resolve|combine|Combine|url_join|concat|Concat|joinUrl|appendingPathComponent)$/
const wrappers =
  /^(?:URI|URL|Uri|url|uri|create|parse|Parse|parse_uri|encodeURI|String|str|to_s|URLRequest|HttpUrl|fromHttpUrl|fromUriString|string|toString|freeze|quote|escape|f|r|path|from|addressable|http)$/
const neutral =
  /^(?:trim|strip|rstrip|lstrip|chomp|toString|to_s|to_str|freeze|encode|toUriString|String|href|absoluteString|build|TrimEnd|trimEnd|dup|rstrip|removesuffix|replace|sub|expand)$/
const maxDepth = 8

export class Expressions {
  readonly #tokens: readonly Token[]
  readonly #language: Language
  readonly #known: (Expression | undefined)[] = []

  constructor(tokens: readonly Token[], language: Language) {
    this.#tokens = tokens
    this.#language = language
  }

  /** The expression that begins at a token, if one does that can be a text. */
  at(index: number, depth = 0): Expression | undefined {
    if (depth > maxDepth) return undefined
    if (!(index in this.#known)) this.#known[index] = this.#chain(index, depth)
    return this.#known[index]
  }

  /** Whether a token goes on with what stands before it. */
  isInside(index: number): boolean {
    const before = this.#tokens[index - 1]
    if (!before) return false
    if (this.#isJoin(index - 1)) return true
    const token = this.#tokens[index]
    return (
      this.#language.adjacentJoin === true &&
      token?.kind === 'string' &&
      before.kind === 'string' &&
      token.statement === before.statement
    )
  }

  #isJoin(index: number): boolean {
    const token = this.#tokens[index]
    if (token?.kind !== 'operator') return false
    const before = this.#tokens[index - 1]
    if (!before || before.kind === 'operator' || before.kind === 'open') return false
    if (token.text === '+' || token.text === '..' || token.text === '<<') return true
    // Of addresses; of paths of files, too.
    if (token.text === '/')
      return (
        this.#tokens[index + 1]?.kind === 'string' &&
        before.kind === 'name' &&
        /url|uri|base|endpoint|host|api|address/i.test(before.text)
      )
    return token.text === '.' && this.#language.dotJoins === true && this.#tokens[index + 1]?.kind !== 'operator'
  }

  #chain(index: number, depth: number): Expression | undefined {
    let operand = this.#operand(index, depth)
    if (!operand) return undefined
    const parts: Part[] = [...operand.parts]
    const used = [...operand.used]
    let { end, isJoined } = operand
    for (let count = 0; count < 40; count++) {
      const isSlash = this.#tokens[end]?.text === '/'
      const next = this.#isJoin(end) ? end + 1 : this.isInside(end) ? end : undefined
      if (next === undefined) break
      operand = this.#operand(next, depth)
      if (!operand) break
      if (isSlash) parts.push('/')
      parts.push(...operand.parts)
      used.push(...operand.used)
      isJoined = true
      end = operand.end
    }
    const template = joined(parts)
    return isTooLong(template) || used.length > 200 ? undefined : { parts: template, end, used, isJoined }
  }

  #operand(index: number, depth: number): Expression | undefined {
    const token = this.#tokens[index]
    if (depth > maxDepth) return undefined
    if (token?.kind === 'string') return isTooLong(token.parts) ? undefined : this.#afterString(index, token, depth)
    if (token?.kind === 'open' && token.text === '(') return this.#group(index, token, depth)
    if (token?.kind !== 'name') return undefined
    if (token.text === 'new' || token.text === 'await') return this.#operand(index + 1, depth + 1)
    return isKeyword(token.text) ? undefined : this.#afterName(index, token, depth)
  }

  #afterString(index: number, token: Token, depth: number): Expression {
    let expression: Expression = { parts: token.parts, end: index + 1, used: [index], isJoined: false }
    const [dot, method, open] = [1, 2, 3].map((step) => this.#tokens[index + step])
    if (dot?.text === '.' && method?.kind === 'name' && open?.text === '(' && open.match !== -1) {
      if (formats.test(lastOf(nameOf(method.text)))) expression = this.#formatted(token.parts, index, index + 3, depth)
      else if (neutral.test(method.text)) expression = { ...expression, end: open.match + 1 }
    } else if (dot?.text === '%' && method) {
      const isGroup = method.kind === 'open'
      if (isGroup && method.match !== -1) expression = this.#formatted(token.parts, index, index + 2, depth)
      else {
        const value = this.#operand(index + 2, depth + 1)
        if (value)
          expression = {
            parts: filled(token.parts, [value.parts]),
            end: value.end,
            used: [index, ...value.used],
            isJoined: true,
          }
      }
    }
    return expression
  }

  #formatted(parts: Template, index: number, open: number, depth: number): Expression {
    const values = this.#arguments(open, depth)
    const end = (this.#tokens[open]?.match ?? open) + 1
    const used = [index, ...values.flatMap((each) => each.expression?.used ?? [])]
    return {
      parts: filledByName(filled(parts, values.filter(({ key }) => key === '').map(partsOf)), values),
      end,
      used,
      isJoined: true,
    }
  }

  /** `(base + "/path")`, or a cast before what it is about. */
  #group(index: number, token: Token, depth: number): Expression | undefined {
    if (token.match === -1) return undefined
    const inner = this.at(index + 1, depth + 1)
    if (inner && inner.end === token.match) {
      const after = this.#tokens[token.match + 1]
      const isCast =
        !inner.isJoined &&
        this.#tokens[index + 1]?.kind === 'name' &&
        after !== undefined &&
        (after.kind === 'name' || after.kind === 'string')
      return isCast ? this.#operand(token.match + 1, depth + 1) : { ...inner, end: token.match + 1 }
    }
    return undefined
  }

  #afterName(index: number, token: Token, depth: number): Expression {
    const name = nameOf(token.text)
    let end = index + 1
    let open = this.#tokens[end]
    let key = name
    // ENV["NAME"], paths[:list]
    while (
      open?.text === '[' &&
      open.match !== -1 &&
      open.at === (this.#tokens[end - 1]?.at ?? 0) + (this.#tokens[end - 1]?.text.length ?? 0) &&
      key.length < 200
    ) {
      const inside = this.#tokens[open.match - 1]
      const word = inside?.kind === 'string' ? wordOf(inside.parts) : (inside?.text ?? '')
      key = /^(?:ENV|env|environ|process\.env|os\.environ)$/.test(key) ? word : `${key}.${word}`
      end = open.match + 1
      open = this.#tokens[end]
    }
    const plain: Expression = { parts: [{ name: key }], end, used: [index], isJoined: false }
    if (open?.text === '<' && /^[A-Z]/.test(this.#tokens[end + 1]?.text ?? '')) return plain
    if (open?.text !== '(' || open.match === -1 || end !== index + 1) return plain
    const callee = lastOf(name)
    const close = open.match + 1
    const call: Expression = {
      parts: [{ name: neutral.test(callee) ? name.slice(0, -callee.length - 1) : name }],
      end: close,
      used: [index],
      isJoined: false,
    }
    if (formats.test(callee) || formats.test(name)) {
      const [first, ...rest] = this.#arguments(end, depth)
      const isText = (first?.expression && !name.includes('.')) || /^(?:fmt|String|string)\./.test(name)
      if (isText && first?.expression) {
        const used = [index, ...[first, ...rest].flatMap((each) => each.expression?.used ?? [])]
        return this.#after({
          parts: filled(first.expression.parts, rest.map(partsOf)),
          end: close,
          used,
          isJoined: true,
        })
      }
      // PATH.format(name=value)
      const values = [first, ...rest].filter((each) => each !== undefined)
      return {
        parts: [{ name: name.slice(0, -callee.length - 1) }],
        end: close,
        used: [index, ...values.flatMap((each) => each.expression?.used ?? [])],
        isJoined: true,
      }
    }
    if (joins.test(callee) && (name.includes('.') || /url|path|join/i.test(callee)))
      return this.#joinedCall(index, end, close, depth)
    if (wrappers.test(callee)) {
      const values = this.#arguments(end, depth)
      const [first, second] = values.map((each) => each.expression)
      if (first && first.end !== undefined) {
        // new URL('/path', base)
        const isBased =
          second &&
          values.length === 2 &&
          typeof first.parts[0] === 'string' &&
          /^\/?[a-z]/.test(first.parts[0]) &&
          callee === 'URL'
        const parts = isBased
          ? joined([...second.parts, first.parts[0]?.toString().startsWith('/') ? '' : '/', ...first.parts])
          : first.parts
        return this.#after({
          parts,
          end: close,
          used: [index, ...first.used, ...(isBased ? second.used : [])],
          isJoined: true,
        })
      }
    }
    return this.#after(call)
  }

  /** `….toString()`, `….path("/more")` */
  #after(expression: Expression): Expression {
    let result = expression
    for (let count = 0; count < 12; count++) {
      const [dot, method, open] = [0, 1, 2].map((step) => this.#tokens[result.end + step])
      if (dot?.text !== '.' || method?.kind !== 'name' || open?.text !== '(' || open.match === -1) break
      const callee = lastOf(nameOf(method.text))
      if (neutral.test(callee)) result = { ...result, end: open.match + 1 }
      else if (/^(?:path|appendPath|addPathSegments|appendingPathComponent|join)$/.test(callee)) {
        const value = this.at(result.end + 3, maxDepth)
        if (!value || value.end !== open.match) break
        const slash = /^\//.test(String(value.parts[0])) ? '' : '/'
        result = {
          parts: joined([...result.parts, slash, ...value.parts]),
          end: open.match + 1,
          used: [...result.used, ...value.used],
          isJoined: true,
        }
      } else break
    }
    return result
  }

  #joinedCall(index: number, open: number, close: number, depth: number): Expression {
    const values = this.#arguments(open, depth)
    const parts = values.flatMap((value, at): Part[] => {
      const [first = '', ...rest] = partsOf(value)
      const text = typeof first === 'string' && at > 0 ? first.replace(/^\/+/, '') : first
      return at === 0 ? [first, ...rest] : ['/', text, ...rest]
    })
    const used = [index, ...values.flatMap((each) => each.expression?.used ?? [])]
    return this.#after({ parts: withoutDoubleSlashes(joined(parts)), end: close, used, isJoined: true })
  }

  #arguments(open: number, depth: number): Argument[] {
    const close = this.#tokens[open]?.match ?? -1
    const found: Argument[] = []
    let start = open + 1
    for (let at = open + 1; at <= close && found.length < 20; at++) {
      const token = this.#tokens[at] as Token
      if (token.kind === 'open' && token.match > at) at = token.match
      else if (at === close || (token.kind === 'operator' && token.text === ',')) {
        if (at > start) found.push(this.#argument(start, at, depth))
        start = at + 1
      }
    }
    return found
  }

  #argument(start: number, end: number, depth: number): Argument {
    const isKeyed = this.#tokens[start]?.kind === 'name' && /^[=:]$/.test(this.#tokens[start + 1]?.text ?? '')
    const expression = this.at(isKeyed ? start + 2 : start, depth + 1)
    return {
      key: isKeyed ? (this.#tokens[start]?.text ?? '') : '',
      expression: expression?.end === end ? expression : undefined,
    }
  }
}

interface Argument {
  readonly key: string
  readonly expression: Expression | undefined
}

const partsOf = ({ expression }: Argument): Template => expression?.parts ?? [{ name: '' }]

const withoutDoubleSlashes = (parts: Template): Template =>
  parts.map((part, at) => (typeof part === 'string' ? part.replace(at === 0 ? /(?<!:)\/\/+/g : /\/\/+/g, '/') : part))

/** Values for `%s`, `{}` and `{0}`, in their order. */
function filled(parts: Template, values: readonly Template[]): Template {
  let next = 0
  return joined(
    parts.flatMap((part): Part[] => {
      if (!isName(part)) return [part]
      return part.name === '' ? [...(values[next++] ?? [part])] : [part]
    }),
  )
}

function filledByName(parts: Template, values: readonly Argument[]): Template {
  return joined(
    parts.flatMap((part): Part[] => {
      const value = isName(part) && part.name !== '' ? values.find(({ key }) => key === part.name) : undefined
      return value ? [...partsOf(value)] : [part]
    }),
  )
}
