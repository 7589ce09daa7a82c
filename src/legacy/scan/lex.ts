// Reads a program as tokens: strings with what is put into them, names with their dots, brackets, operators. Comments go.
// Every character is read a bounded number of times, whatever the text: a quote that nothing closes is tried once a line
// (once a file where strings may have line ends), and then taken for what it is, a character.
import type { Language } from './languages.ts'
import { joined, nameOf, type Part, type Template } from './template.ts'

export interface Token {
  readonly kind: 'string' | 'name' | 'operator' | 'open' | 'close'
  readonly text: string
  /** Of a string. */
  readonly parts: Template
  readonly at: number
  /** Which statement it belongs to. */
  statement: number
  /** The bracket around it, by its index; -1 for none. */
  parent: number
  /** The brace around it, past other brackets. */
  block: number
  /** Of a bracket: its other half. */
  match: number
}

const longestLine = 20_000
const nothing: Template = []
const longestName = 200
const longestInsertion = 200
const blank = /[^\S\n]+/y
const word = /[$@]{0,2}[A-Za-z_][\w$]*(?:[?!](?!=))?(?:(?:\?\.|&\.|\.|::|->)[$@]?[A-Za-z_][\w$]*(?:[?!](?!=))?)*/y
const dashed = /[A-Za-z]+(?:-[A-Za-z]+)+/y
const number = /\d[\w.]*/y
const operator =
  /===|!==|<<=|\?\?=|\|\|=|&&=|\*\*=|==|!=|<=|>=|=>|->|\+=|-=|:=|\|\||&&|::|<<|>>|\.\.\.?|\+\+|--|=~|[^\s]/y

export function tokensOf(text: string, language: Language): Token[] {
  return structured(new Lexer(text, language).run(), language)
}

class Lexer {
  readonly #text: string
  readonly #language: Language
  readonly #tokens: Token[] = []
  #at = 0
  /** Quotes that nothing closes, and up to where they are not tried. */
  readonly #dead = new Map<string, number>()

  constructor(text: string, language: Language) {
    this.#text = text
    this.#language = language
  }

  run(): Token[] {
    const { length } = this.#text
    let lineStart = true
    while (this.#at < length) {
      const character = this.#text[this.#at] as string
      if (character === '\n') {
        this.#push('operator', '\n', 1)
        lineStart = true
        continue
      }
      if (lineStart && this.#skipLongLine()) continue
      lineStart = false
      if (this.#match(blank)) continue
      if (this.#comment()) continue
      if (this.#string(character)) continue
      if ('([{'.includes(character)) this.#push('open', character, 1)
      else if (')]}'.includes(character)) this.#push('close', character, 1)
      else this.#wordOrOperator()
    }
    return this.#tokens
  }

  #push(kind: Token['kind'], text: string, length: number, parts = nothing): void {
    this.#tokens.push({
      kind,
      text,
      parts,
      at: this.#at,
      statement: 0,
      parent: -1,
      block: -1,
      match: -1,
    })
    this.#at += length
  }

  #match(form: RegExp): string | undefined {
    form.lastIndex = this.#at
    const found = form.exec(this.#text)?.[0]
    if (found !== undefined && form === blank) this.#at += found.length
    return found
  }

  /** A bundle that somebody checked in, not a program to migrate. */
  #skipLongLine(): boolean {
    const end = this.#text.indexOf('\n', this.#at)
    const stop = end === -1 ? this.#text.length : end
    if (stop - this.#at <= longestLine) return false
    this.#at = stop
    return true
  }

  #wordOrOperator(): void {
    const isCmdlet = this.#language.blocks?.[0] === '<#'
    const name = (isCmdlet && this.#match(dashed)) || this.#match(word)
    const text = name ?? this.#match(number) ?? this.#match(operator) ?? ' '
    this.#push(name === undefined || name.length > longestName ? 'operator' : 'name', text, text.length)
  }

  #comment(): boolean {
    const { comments, blocks } = this.#language
    if (blocks && this.#text.startsWith(blocks[0], this.#at) && !this.#dead.has(blocks[0])) {
      const end = this.#text.indexOf(blocks[1], this.#at + blocks[0].length)
      if (end === -1) this.#dead.set(blocks[0], Number.POSITIVE_INFINITY)
      else {
        this.#at = end + blocks[1].length
        return true
      }
    }
    const isLine = comments.some(
      (mark) =>
        this.#text.startsWith(mark, this.#at) &&
        (mark === '//'
          ? this.#text[this.#at - 1] !== ':'
          : this.#text[this.#at + 1] !== '{' && (this.#at === 0 || /\s/.test(this.#text[this.#at - 1] as string))),
    )
    if (!isLine) return false
    const end = this.#text.indexOf('\n', this.#at)
    this.#at = end === -1 ? this.#text.length : end
    return true
  }

  #string(character: string): boolean {
    if (character !== '"' && character !== "'" && character !== '`') return false
    const { multiline } = this.#language
    const tripled = character.repeat(3)
    const quote = multiline.includes(tripled) && this.#text.startsWith(tripled, this.#at) ? tripled : character
    if (this.#at < (this.#dead.get(quote) ?? 0)) return false
    const isMultiline = multiline.includes(quote)
    const last = this.#tokens.at(-1)
    const isPrefixed = last !== undefined && last.at + last.text.length === this.#at
    const prefix = isPrefixed && (last.kind === 'name' || last.kind === 'operator') ? this.#prefix() : ''
    const found = readString(this.#text, this.#at + quote.length, {
      quote,
      isMultiline,
      isRaw: this.#language.raw.includes(quote) || prefix.includes('@'),
      takesBraces: this.#language.bracePrefix?.test(prefix) ?? false,
      insertions: this.#language.insertions,
    })
    if (!found) {
      const end = isMultiline ? -1 : this.#text.indexOf('\n', this.#at)
      this.#dead.set(quote, end === -1 ? Number.POSITIVE_INFINITY : end)
      return false
    }
    // The prefix of a string is no name.
    if (prefix !== '') while ((this.#tokens.at(-1)?.at ?? -1) >= this.#at - prefix.length) this.#tokens.pop()
    this.#push('string', quote, 0, found.parts)
    this.#at = found.end
    return true
  }

  #prefix(): string {
    const before = this.#text.slice(Math.max(0, this.#at - 3), this.#at)
    return /(?:^|[^\w$@])([fFrRbBuU]{1,2}|[$@]{1,2})$/.exec(before)?.[1] ?? ''
  }
}

interface StringForm {
  readonly quote: string
  readonly isMultiline: boolean
  readonly isRaw: boolean
  readonly takesBraces: boolean
  readonly insertions: Language['insertions']
}

/** From behind its opening quote. Undefined: nothing closes it. */
function readString(text: string, from: number, form: StringForm): { parts: Template; end: number } | undefined {
  const { quote, insertions } = form
  const parts: Part[] = []
  let plain = from
  const put = (at: number, ...more: Part[]): void => {
    if (at > plain) parts.push(text.slice(plain, at))
    parts.push(...more)
  }
  for (let at = from; at < text.length; ) {
    const character = text[at] as string
    if (character === '\n' && !form.isMultiline) return undefined
    if (text.startsWith(quote, at)) {
      put(at)
      return { parts: joined(parts), end: at + quote.length }
    }
    if (character === '\\' && !form.isRaw && !(insertions.includes('\\(') && text[at + 1] === '(')) {
      // An escape, or a line that goes on.
      put(at, text[at + 1] === '\n' ? '' : (text[at + 1] ?? ''))
      if (text[at + 1] === '\n' && !form.isMultiline) return undefined
      at += 2
      plain = at
      continue
    }
    const insertion = !form.isRaw && '$#{\\%'.includes(character) ? insertionAt(text, at, form) : undefined
    if (insertion) {
      put(at, { name: insertion.name })
      at = insertion.end
      plain = at
    } else at += 1
  }
  return undefined
}

const simpleBraces = /\{\{?\s{0,4}([\w.\-:@$]{0,100})\s{0,4}(?:\|[^{}\n]{0,100})?\}?\}/y
const simpleName = /\$([A-Za-z_]\w*(?:\.[a-z]\w*)?)/y
const verb = /%(?:\d+\$)?[sdvq]|%\((\w+)\)s/y

interface Insertion {
  readonly name: string
  readonly end: number
}

/** What is put in here, if anything is. */
function insertionAt(text: string, at: number, form: StringForm): Insertion | undefined {
  const { insertions } = form
  for (const opener of ['${', '#{', '$(', '\\('] as const)
    if (insertions.includes(opener) && text.startsWith(opener, at)) return bracketed(text, at + 2, form)
  if (text[at] === '{' && form.takesBraces && text[at + 1] !== '{') return bracketed(text, at + 1, form)
  for (const simple of [simpleBraces, verb] as const) {
    simple.lastIndex = at
    const match = simple.exec(text)
    if (match) return { name: nameOf(match[1] ?? ''), end: at + match[0].length }
  }
  if (!insertions.includes('$name') || text.startsWith('$ungrouped', at)) return undefined
  simpleName.lastIndex = at
  const match = simpleName.exec(text)
  return match ? { name: nameOf(match[1] ?? ''), end: at + match[0].length } : undefined
}

/** An expression up to its bracket. A longer one than people write is not looked for: each look costs that much. */
function bracketed(text: string, from: number, { isMultiline }: StringForm): Insertion | undefined {
  let depth = 1
  let open = ''
  for (let at = from; at < Math.min(text.length, from + longestInsertion); at++) {
    const character = text[at] as string
    if (character === '\n' && !isMultiline) return undefined
    if (open !== '') {
      if (character === '\\') at++
      else if (character === open) open = ''
    } else if (character === '"' || character === "'" || character === '`') open = character
    else if (character === '{' || character === '(') depth += 1
    else if ((character === '}' || character === ')') && --depth === 0)
      return { name: nameOf(text.slice(from, at)), end: at + 1 }
  }
  return undefined
}

/** A brace after one of these holds data; after others, statements. */
const beforeData = new Set(['=', ':', ',', '(', '[', '=>', 'return', '+=', ':=', '||', '?', '??', '@'])
const continues = new Set('+ . \\ ` , = := += && || ? << % => &. ?. ::'.split(' '))
const continued = /^(?:[.+%?|&]|&\.|\?\.|->|::|<<|&&|\|\|)$/

/** Brackets find their other half, and tokens their statements. Line ends go. */
function structured(all: readonly Token[], { bracesAreData = false }: Language): Token[] {
  const tokens: Token[] = []
  const open: { index: number; statement: number; isBlock: boolean; block: number }[] = []
  let statement = 0
  let next = 1
  const isBlockLevel = (): boolean => open.at(-1)?.isBlock ?? true
  for (let index = 0; index < all.length; index++) {
    const token = all[index] as Token
    const last = tokens.at(-1)
    if (token.text === '\n' && token.kind === 'operator') {
      const following = all[index + 1]
      const isOpen =
        (last && last.kind === 'operator' && continues.has(last.text)) ||
        (following && following.kind === 'operator' && continued.test(following.text))
      if (isBlockLevel() && !isOpen) statement = next++
      continue
    }
    if (token.kind === 'operator' && token.text === ';' && isBlockLevel()) {
      statement = next++
      continue
    }
    token.statement = statement
    const around = open.at(-1)
    token.parent = around?.index ?? -1
    token.block = around?.block ?? -1
    const position = tokens.push(token) - 1
    if (token.kind === 'open') {
      const isData = token.text !== '{' || bracesAreData || (last !== undefined && beforeData.has(last.text) && !(last.text === '=>' && !bracesAreData))
      open.push({ index: position, statement, isBlock: !isData, block: token.text === '{' ? position : token.block })
      if (!isData) statement = next++
    } else if (token.kind === 'close') {
      const opener = open.pop()
      if (!opener) continue
      const other = tokens[opener.index] as Token
      other.match = position
      token.match = opener.index
      token.parent = other.parent
      if (opener.isBlock) {
        statement = opener.statement
        token.statement = statement
      }
    }
  }
  return tokens
} // biome-ignore format: the tables above
