// Legacy calls in programs: every text that a program puts together, with its constants in place of their names.
import type { Constants, Definition } from './constants.ts'
import { Expressions, isKeyword } from './expressions.ts'
import type { Candidate } from './finding.ts'
import { type Language, type LanguageName, languages } from './languages.ts'
import { type Token, tokensOf } from './lex.ts'
import { type Match, matchOf } from './match.ts'
import { lowerBound, Methods } from './method.ts'
import { commandMethod, shellCandidates } from './shell.ts'
import type { Source } from './source.ts'
import { inserted, isName, lastOf, nameOf, type Template, textOf, wordOf } from './template.ts'
import { isFileCall, isRouteCall, methodOfCallee } from './verbs.ts'

const assigns = new Set(['=', ':=', '||=', '??='])
const definers = /^(?:def|class|module)$/

export class Program {
  readonly #source: Source
  readonly #language: Language
  readonly #tokens: readonly Token[]
  readonly #expressions: Expressions
  /** Where functions begin, for languages whose braces do not say where they end. */
  readonly #definers: readonly number[]

  constructor(source: Source, language: LanguageName) {
    this.#source = source
    this.#language = languages[language]
    this.#tokens = tokensOf(source.text, this.#language)
    this.#expressions = new Expressions(this.#tokens, this.#language)
    const isIndented = this.#language.isIndented === true
    this.#definers = this.#tokens.flatMap(({ kind, text }, at) =>
      isIndented && kind === 'name' && definers.test(text) ? [at] : [],
    )
  }

  /** Tells the constants what this program gives names to. */
  define(constants: Constants): void {
    for (const [index, token] of this.#tokens.entries()) {
      if (token.kind !== 'operator') continue
      if (assigns.has(token.text)) this.#defineVariable(index, constants)
      else if (token.text === '+=') this.#extend(index, constants)
      else if (token.text === ':' || token.text === '=>') this.#defineMember(index, constants)
    }
  }

  #defineVariable(index: number, constants: Constants): void {
    const left = this.#leftOf(index)
    if (left === undefined || !this.#isStatementLevel(left)) return
    this.#add(left, nameOf((this.#tokens[left] as Token).text), this.#expressions.at(index + 1), constants)
  }

  #extend(index: number, constants: Constants): void {
    const left = this.#leftOf(index)
    const more = this.#expressions.at(index + 1)
    if (left === undefined || !more) return
    const name = nameOf((this.#tokens[left] as Token).text)
    const before = constants.find(name, this.#source.file, left)
    if (before) this.#add(left, name, { parts: [...before.value, ...more.parts], end: more.end }, constants)
  }

  /** `paths = { list: "/list" }` is `paths.list`; C# has `string Path => "/list"`. */
  #defineMember(index: number, constants: Constants): void {
    const key = this.#tokens[index - 1]
    const open = this.#tokens[key?.parent ?? -1]
    const value = this.#expressions.at(index + 1)
    if (!key || !value || (key.kind !== 'name' && key.kind !== 'string')) return
    const word = key.kind === 'string' ? wordOf(key.parts) : nameOf(key.text)
    const isMember = open?.text === '{' || open?.text === '['
    const operator = isMember ? this.#tokens[key.parent - 1] : undefined
    const container = operator && assigns.has(operator.text) ? this.#leftOf(key.parent - 1) : undefined
    if (container !== undefined) {
      const name = `${nameOf((this.#tokens[container] as Token).text)}.${word}`
      this.#add(index - 1, name, value, constants, this.#isConstant(container))
    } else if (this.#tokens[index]?.text === '=>' && key.kind === 'name') this.#add(index - 1, word, value, constants)
  }

  #add(
    at: number,
    name: string,
    given: { readonly parts: Template; readonly end: number } | undefined,
    constants: Constants,
    isConstant = this.#isConstant(at),
  ): void {
    const value = given?.parts ?? []
    const isText = value.some((part) => typeof part === 'string') || value.length > 1
    if (!given || !isText || name === '') return
    const line = this.#source.lineOf((this.#tokens[at] as Token).at)
    // Known behind its value, which may use the same name: url = f"{self.url}/path".
    const until = this.#scopeEnd(at)
    constants.add({ name, value, file: this.#source.file, line, at: given.end - 1, until, isConstant })
  }

  /** The name before `=`, past its type. */
  #leftOf(index: number): number | undefined {
    const [before, second, third] = [1, 2, 3].map((step) => this.#tokens[index - step])
    if (before?.kind !== 'name') return undefined
    if (second?.text === ':' && third?.kind === 'name' && third.statement === before.statement) return index - 3
    return before.text === 'string' && second?.kind === 'name' ? index - 2 : index - 1
  }

  #isStatementLevel(at: number): boolean {
    const parent = (this.#tokens[at] as Token).parent
    if (this.#tokens[parent]?.text !== '(') return true
    return /^(?:const|var)$/.test(this.#tokens[parent - 1]?.text ?? '')
  }

  #isConstant(at: number): boolean {
    const { text, parent, statement } = this.#tokens[at] as Token
    const name = lastOf(nameOf(text))
    if (/^[A-Z][A-Z0-9_]+$/.test(name)) return true
    const isTop = parent === -1 || (this.#tokens[parent]?.text === '(' && this.#tokens[parent]?.parent === -1)
    if (!this.#language.hasClasses)
      return isTop && (this.#language.isIndented !== true || this.#source.place(this.#tokens[at]?.at ?? 0).column === 1)
    for (let index = at - 1; index >= 0 && at - index < 8 && this.#tokens[index]?.statement === statement; index--)
      if (/^(?:const|final|static|readonly)$/.test(this.#tokens[index]?.text ?? '')) return true
    return isTop
  }

  /** A variable is known to the end of its block, one that is not declared there to the end of the one around it. */
  #scopeEnd(at: number): number {
    const { text, parent, statement } = this.#tokens[at] as Token
    if (/^(?:@|this\.|self\.|\$this)/.test(text) || (parent === -1 && this.#isConstant(at)))
      return Number.POSITIVE_INFINITY
    let block = this.#tokens[at]?.block ?? -1
    const isDeclared =
      this.#tokens[at + 1]?.text === ':=' ||
      (this.#tokens[at - 1]?.kind === 'name' && this.#tokens[at - 1]?.statement === statement)
    const around = this.#tokens[block]?.block ?? -1
    if (around !== -1 && !isDeclared) block = around
    if (block !== -1)
      return this.#tokens[block]?.match === -1 ? Number.POSITIVE_INFINITY : (this.#tokens[block]?.match ?? 0)
    return this.#definers[lowerBound(this.#definers, at + 1)] ?? Number.POSITIVE_INFINITY
  }

  candidates(constants: Constants, isUsed: (definition: Definition, path: string) => void): Candidate[] {
    const candidates: Candidate[] = []
    const methods = new Methods(this.#tokens, this.#language)
    const absorbed = new Set<number>()
    for (const [index, { kind, text, parts }] of this.#tokens.entries()) {
      if ((kind !== 'string' && kind !== 'name') || absorbed.has(index) || this.#expressions.isInside(index)) continue
      if (kind === 'name' && isKeyword(text)) continue
      if (kind === 'string' && /\b(?:curl|wget)\s/.test(textOf(parts)))
        for (const candidate of this.#commandCandidates(index, constants)) candidates.push(candidate)
      const expression = this.#expressions.at(index)
      if (!expression) continue
      const { used, parts: resolved } = constants.resolve(expression.parts, this.#source.file, index)
      const isBare = kind === 'name' && !expression.isJoined
      if (isBare && !used[0]?.isConstant) continue
      const match = matchOf(this.#extended(expression.parts, resolved, index, constants))
      if (!match || this.#isNoCall(index, expression.end, match, isBare)) continue
      for (const each of expression.used) absorbed.add(each)
      const found = this.#candidatesOf(index, expression.end, expression.used, match, methods, isBare)
      if (found.length > 0) for (const definition of used) isUsed(definition, match.path)
      candidates.push(...found)
    }
    return candidates
  }

  /** `url += "/all"` goes on with what it was. */
  #extended(parts: Template, resolved: Template, index: number, constants: Constants): Template {
    const before = this.#tokens[index - 1]
    if (before?.text !== '+=') return resolved
    const left = this.#leftOf(index - 1)
    const name = left === undefined ? '' : nameOf((this.#tokens[left] as Token).text)
    const earlier = left === undefined ? undefined : constants.find(name, this.#source.file, left)
    return earlier ? constants.resolve([...earlier.value, ...parts], this.#source.file, left ?? 0).parts : resolved
  }

  #isNoCall(start: number, end: number, match: Match, isBare: boolean): boolean {
    const next = this.#tokens[end]
    const isKey = next !== undefined && (next.text === ':' || next.text === '=>' || assigns.has(next.text))
    if (isKey && match.method === undefined) return true
    // Python's paths of files: folder / "name".
    if (this.#tokens[start - 1]?.text === '/') return true
    if (isBare && this.#isCompared(start, end)) return true
    for (let at = start, level = 0; at !== -1 && level < 20; at = this.#tokens[at]?.parent ?? -1, level++) {
      const key =
        this.#tokens[at - 1]?.text === '=>' || this.#tokens[at - 1]?.text === ':' || this.#tokens[at - 1]?.text === '='
          ? this.#tokens[at - 2]
          : undefined
      const word = key?.kind === 'string' ? wordOf(key.parts) : (key?.text ?? '')
      if (level > 0 && /^["']?(?:help|examples?|_links|links|docs)$/.test(word)) return true
    }
    return false
  }

  /** A constant that is compared is not requested. */
  #isCompared(start: number, end: number): boolean {
    const around = [this.#tokens[start - 1]?.text ?? '', this.#tokens[end]?.text ?? '']
    const open = this.#tokens[start]?.parent ?? -1
    return (
      around.some((text) => /^(?:[=!]==?)$/.test(text)) ||
      /(?:^|\.)(?:equals|startsWith|contains|endsWith|includes)$/.test(this.#tokens[open - 1]?.text ?? '')
    )
  }

  #candidatesOf(
    start: number,
    end: number,
    used: readonly number[],
    match: Match,
    methods: Methods,
    isBare: boolean,
  ): Candidate[] {
    const isFitting = (method: string): boolean => match.calls.some(({ call }) => call.method === method)
    const command = this.#commandAround(start)
    const use = methods.methodOf(start, end, isFitting)
    if (isFileCall(nameOf(use.callee)) || isFileCall(use.callee)) return []
    const isRoute = isRouteCall(use.callee)
    if (isRoute && match.isGeneric) return []
    const near = match.method ?? command ?? use.method
    const flowing =
      near !== undefined && isFitting(near)
        ? []
        : methods.ofVariables(this.#assignedBy(start), { from: end, until: this.#scopeEnd(start) }, isFitting)
    const said: (string | undefined)[] = flowing.length > 0 ? flowing : [near]
    if (isBare && said[0] === undefined && use.callee === '') return []
    const place =
      used.find(
        (each) => this.#tokens[each]?.kind === 'string' && textOf(this.#tokens[each]?.parts ?? []).length > 1,
      ) ?? start
    const { at } = this.#tokens[place] as Token
    const last = this.#tokens[end - 1] as Token
    const text = this.#source.snippet((this.#tokens[start] as Token).at, this.#tokens[end]?.at ?? last.at + 40)
    const receiver = match.baseKind === 'none' ? this.#receiverOf(use.callee, start) : ''
    const isRequest = !isRoute && (said[0] !== undefined || command !== undefined)
    return said.map((method) => ({
      ...this.#source.place(at),
      text,
      match,
      method,
      isRequest,
      receiver,
      mentionsProduct: this.#mentionsProduct(start),
    }))
  }

  /** Variables that the statement of a token assigns, or hands it to. */
  #assignedBy(start: number): string[] {
    const { statement } = this.#tokens[start] as Token
    const names: string[] = []
    let isLeft = false
    for (let at = start - 1; at >= 0 && start - at < 200 && this.#tokens[at]?.statement === statement; at--) {
      const { kind, text } = this.#tokens[at] as Token
      if (kind === 'operator' && (assigns.has(text) || text === '+=')) isLeft = true
      else if (isLeft && kind === 'name' && !isKeyword(text)) names.push(...this.#leftNames(at))
      if (names.length > 3) break
      if (kind === 'name' && /^curl_setopt$/.test(text)) names.push(nameOf(this.#tokens[at + 2]?.text ?? ''))
    }
    return names.filter((name) => name !== '' && name !== 'err' && name !== '_')
  }

  #leftNames(at: number): string[] {
    const next = this.#tokens[at + 1]?.text ?? ''
    return assigns.has(next) || next === ',' || next === '+=' || next === ':'
      ? [nameOf(this.#tokens[at]?.text ?? '')]
      : []
  }

  /** `["curl", "-X", "DELETE", url]`, `sh("curl", …)` */
  #commandAround(start: number): string | undefined {
    const open = (this.#tokens[start] as Token).parent
    const first = this.#tokens[open + 1]
    if (open === -1 || first?.kind !== 'string' || !/^(?:curl|wget)$/.test(wordOf(first.parts))) return undefined
    const words = this.#tokens.slice(open + 1, Math.min(this.#tokens[open]?.match ?? 0, open + 200))
    return commandMethod(words.filter(({ kind }) => kind === 'string').map(({ parts }) => wordOf(parts)))
  }

  #receiverOf(callee: string, start: number): string {
    const open = (this.#tokens[start] as Token).parent
    if (callee.startsWith('@')) {
      if (/^@[A-Z]/.test(callee)) return '@'
    } else if (this.#tokens[open - 2]?.text === '[' && methodOfCallee(callee)) return '[]'
    const name = nameOf(callee)
    if (name === '') return ''
    const dot = this.#tokens[open - 2]
    const earlier = this.#tokens[(dot?.text === '.' ? (this.#tokens[open - 3]?.match ?? -1) : -1) - 1]
    if (!name.includes('.') && earlier?.kind === 'name') return lastOf(nameOf(earlier.text))
    const isVerb = methodOfCallee(callee) !== undefined || /(?:^|\.)(?:request|exec|execute|new)$/.test(name)
    return isVerb && name.includes('.') ? lastOf(name.slice(0, name.lastIndexOf('.'))) : lastOf(name)
  }

  /** Whether the statement says itself that it is about this service. */
  #mentionsProduct(start: number): boolean {
    const { statement } = this.#tokens[start] as Token
    const says = (at: number): boolean => {
      const each = this.#tokens[at] as Token
      return /orka/i.test(
        each.kind === 'string' ? each.parts.map((part) => (isName(part) ? part.name : part)).join(' ') : each.text,
      )
    }
    for (let at = start; at >= 0 && start - at < 100 && this.#tokens[at]?.statement === statement; at--)
      if (says(at)) return true
    for (
      let at = start;
      at < this.#tokens.length && at - start < 100 && this.#tokens[at]?.statement === statement;
      at++
    )
      if (says(at)) return true
    return false
  }

  /** A command in a text: `sh "curl …"`. */
  #commandCandidates(index: number, constants: Constants): Candidate[] {
    const { parts, at } = this.#tokens[index] as Token
    const command = parts.map((part) => (isName(part) ? inserted(part.name) : part)).join('')
    return shellCandidates(this.#source.partAt(command, at), constants, () => undefined, index)
  }
}
