// By which method an address in a program is asked: by the call that it is given to, what else that call is given, what
// is called on the result; otherwise by the calls that the variable is given to which holds it.
import type { Language } from './languages.ts'
import type { Token } from './lex.ts'
import { isName, lastOf, nameOf } from './template.ts'
import { isMethodKey, methodOfCallee, methodOfName, methodOfWord } from './verbs.ts'

interface Asked {
  readonly method: string | undefined
  /** What it is given to: `conn.get`. */
  readonly callee: string
}

/** How far it is looked, in tokens and steps: what belongs together is near. */
const reach = { group: 400, statement: 200, chain: 12, levels: 8, uses: 12, ahead: 1_500 } as const

export class Methods {
  readonly #tokens: readonly Token[]
  readonly #language: Language
  readonly #places = new Map<string, number[]>()

  constructor(tokens: readonly Token[], language: Language) {
    this.#tokens = tokens
    this.#language = language
    for (const [index, token] of tokens.entries()) {
      if (token.kind === 'name') this.#note(nameOf(token.text).split('.')[0] ?? '', index)
      else if (token.kind === 'string') for (const part of token.parts) if (isName(part)) this.#note(part.name, index)
    }
  }

  #note(name: string, index: number): void {
    if (name === '') return
    const places = this.#places.get(name)
    if (places) places.push(index)
    else this.#places.set(name, [index])
  }

  /** Of the expression from `start` to before `end`. */
  asked(start: number, end: number, isFitting: (method: string) => boolean): Asked {
    const near = this.#near(start, end, isFitting)
    return near.method === undefined ? { ...near, method: this.#inStatement(start, end) } : near
  }

  #near(start: number, end: number, isFitting: (method: string) => boolean): Asked {
    let callee = ''
    let other: string | undefined
    const settle = (method: string | undefined): boolean => {
      if (method === undefined) return false
      if (isFitting(method)) return true
      other ??= method
      return false
    }
    let [from, to] = [start, end]
    for (let level = 0; level < reach.levels; level++) {
      const open = this.#tokens[from]?.parent ?? -1
      const bracket = this.#tokens[open]
      if (!bracket) break
      const name = this.#calleeOf(open)
      if (callee === '' && bracket.text === '(') callee = name
      const isBlock = bracket.text === '{' && this.#tokens[open + 1]?.statement !== bracket.statement
      if (isBlock) {
        const closure = this.#language.trailingClosures ? this.#ofClosure(open) : undefined
        if (settle(closure)) return { method: closure, callee }
        break
      }
      for (const method of [
        methodOfCallee(name),
        ...this.#inGroup(open, from, to),
        ...this.#around(open, bracket.match),
      ])
        if (settle(method)) return { method, callee }
      from = open
      to = bracket.match === -1 ? to : bracket.match + 1
    }
    return { method: other, callee }
  }

  /** What a bracket belongs to: `conn.get(`, `get<Answer>(`. */
  #calleeOf(open: number): string {
    let before = open - 1
    if (this.#tokens[before]?.text === '>') {
      for (let step = 0; step < 12 && this.#tokens[before]?.text !== '<'; step++) before -= 1
      before -= 1
    }
    const token = this.#tokens[before]
    return token?.kind === 'name' ? token.text : ''
  }

  /** What is called before and behind a bracket on the same thing: `.method("POST").uri(…)`, `.url(…).post(body)`. */
  *#around(open: number, close: number): Generator<string | undefined> {
    if (close === -1) return
    let at = close + 1
    for (let step = 0; step < reach.chain; step++) {
      while (this.#tokens[at]?.text === '!' || this.#tokens[at]?.text === ')') at += 1
      if (this.#tokens[at]?.text === '{' && this.#language.trailingClosures) yield* this.#inGroup(at, -1, -1)
      if (!/^(?:\.|\?\.|&\.|->)$/.test(this.#tokens[at]?.text ?? '')) break
      const name = this.#tokens[at + 1]?.text ?? ''
      const bracket = this.#tokens[at + 2]
      if (bracket?.text !== '(' || bracket.match === -1) break
      yield isMethodKey(name) ? this.#inGroup(at + 2, -1, -1).next().value || undefined : methodOfCallee(name)
      at = bracket.match + 1
    }
    // Backwards: the name before a bracket, a dot, and the bracket before that.
    at = open - 1
    for (let step = 0; step < reach.chain; step++) {
      const dot = this.#tokens[at - 1]
      const bracket = this.#tokens[at - 2]
      if (dot?.text !== '.' || bracket?.kind !== 'close' || bracket.match === -1) break
      const name = this.#calleeOf(bracket.match)
      if (isMethodKey(name)) yield* this.#inGroup(bracket.match, -1, -1)
      yield methodOfCallee(name)
      at = bracket.match - 1
    }
  }

  /** Methods that stand beside the expression in a bracket, the nearest first. */
  *#inGroup(open: number, from: number, to: number): Generator<string | undefined> {
    const close = this.#tokens[open]?.match ?? -1
    const end = close === -1 ? this.#tokens.length : close
    for (let at = from - 1; at > open && from - at < reach.group; at--) yield this.#said(at)
    for (let at = Math.max(to, open + 1); at < end && at - Math.max(to, open) < reach.group; at++) {
      const token = this.#tokens[at] as Token
      // What is inside of further calls is theirs; settings in braces are not.
      if (token.kind === 'open' && token.text === '(' && token.match > at) at = token.match
      else yield this.#said(at)
    }
  }

  /** The method that a token says. */
  #said(at: number): string | undefined {
    const token = this.#tokens[at] as Token
    const before = this.#tokens[at - 1]
    const isKeyed = before !== undefined && /^(?:[:=]|=>|:=)$/.test(before.text) && this.#isKey(at - 2)
    if (token.kind === 'string') {
      const [word] = token.parts
      if (typeof word !== 'string' || token.parts.length !== 1) return undefined
      return isKeyed || /^[A-Z]+$/.test(word) || this.#isKey(at - 1) || this.#isKey(at - 2)
        ? methodOfWord(word)
        : undefined
    }
    if (token.kind !== 'name') return undefined
    if (isKeyed || this.#isKey(at - 1)) return methodOfWord(lastOf(nameOf(token.text))) ?? methodOfName(token.text)
    // Ruby's :post
    const isSymbol = before?.text === ':' && /^[(,:[]|=>$/.test(this.#tokens[at - 2]?.text ?? '')
    return isSymbol ? methodOfWord(token.text) : methodOfName(token.text)
  }

  #isKey(at: number): boolean {
    const token = this.#tokens[at]
    if (!token) return false
    if (token.text === ':' || token.text === '-' || token.text === '(') return this.#isKey(at - 1)
    const text = token.kind === 'string' ? token.parts.map((part) => (isName(part) ? '' : part)).join('') : token.text
    return (token.kind === 'name' || token.kind === 'string') && text.length < 40 && isMethodKey(text)
  }

  /** `http.post { url(…) }`, `client.request(Method.DELETE) { … }` */
  #ofClosure(open: number): string | undefined {
    const before = this.#tokens[open - 1]
    if (before?.kind === 'name') return methodOfCallee(before.text)
    if (before?.text !== ')' || before.match === -1 || this.#tokens[before.match - 2]?.kind === 'name') return undefined
    const name = this.#calleeOf(before.match)
    if (/^(?:if|while|for|switch|catch|when|guard)$/.test(name)) return undefined
    return methodOfCallee(name) ?? [...this.#inGroup(before.match, -1, -1)].find((method) => method !== undefined)
  }

  /** Calls without brackets, and tools with options: `RestClient.post "…"`, `Invoke-RestMethod -Method Post -Uri "…"`. */
  #inStatement(start: number, end: number): string | undefined {
    const statement = this.#tokens[start]?.statement
    for (let at = start - 1; at >= 0 && start - at < reach.statement; at--) {
      if (this.#tokens[at]?.statement !== statement) break
      const method = this.#said(at) ?? this.#commanded(at)
      if (method !== undefined) return method
    }
    for (let at = end; at < this.#tokens.length && at - end < reach.statement; at++) {
      if (this.#tokens[at]?.statement !== statement) break
      const method = this.#said(at) ?? this.#commanded(at)
      if (method !== undefined) return method
    }
    return undefined
  }

  #commanded(at: number): string | undefined {
    const token = this.#tokens[at] as Token
    const next = this.#tokens[at + 1]
    const isCall = next?.text === '(' || next?.kind === 'string' || (next?.kind === 'name' && token.text.includes('.'))
    return token.kind === 'name' && isCall ? methodOfCallee(token.text) : undefined
  }

  /** Methods by which a variable is asked that is assigned in a statement, up to where it is assigned again. */
  ofVariables(
    names: readonly string[],
    { from, until }: { readonly from: number; readonly until: number },
    isFitting: (method: string) => boolean,
  ): string[] {
    const found = new Set<string>()
    for (const whole of names) {
      const [name = ''] = whole.split('.')
      const before = whole.includes('.') ? this.#setBefore(name, from) : undefined
      if (before !== undefined && isFitting(before)) found.add(before)
      const places = this.#places.get(name) ?? []
      let first = lowerBound(places, from)
      for (let seen = 0; seen < reach.uses && first < places.length; seen++, first++) {
        const at = places[first] as number
        if (at >= until || at - from > reach.ahead || this.#isAssignedAgain(at, from)) break
        const { method } = this.#near(at, at + 1, isFitting)
        const said = [method, this.#onVariable(at), this.#inStatement(at, at + 1)].find(
          (each) => each !== undefined && isFitting(each),
        )
        if (said !== undefined) found.add(said)
      }
    }
    return [...found]
  }

  /** `connection.setRequestMethod("DELETE")`, `request.httpMethod = "POST"`. */
  #onVariable(at: number): string | undefined {
    const token = this.#tokens[at] as Token
    if (token.kind !== 'name' || !isMethodKey(token.text)) return undefined
    const next = this.#tokens[at + 1]
    if (next?.text === '=') return this.#said(at + 2)
    return next?.text === '(' ? [...this.#inGroup(at + 1, -1, -1)].find((each) => each !== undefined) : undefined
  }

  /** `message.Method = HttpMethod.Post`, and then `message.RequestUri = …`. */
  #setBefore(name: string, from: number): string | undefined {
    const places = this.#places.get(name) ?? []
    for (let at = lowerBound(places, from) - 1, seen = 0; at >= 0 && seen < 6; at--, seen++) {
      const method = this.#onVariable(places[at] as number)
      if (method !== undefined) return method
    }
    return undefined
  }

  #isAssignedAgain(at: number, from: number): boolean {
    const token = this.#tokens[at] as Token
    const next = this.#tokens[at + 1]?.text
    const isWhole = token.kind === 'name' && !token.text.replace(/^[$@]+/, '').includes('.')
    if (!isWhole || at <= from || (next !== '=' && next !== ':=')) return false
    // In the other branch it is another value of the same variable.
    for (let index = at - 1, seen = 0; index > from && seen < 40; index--, seen++)
      if (/^(?:else|elif|elsif|case|when|catch|rescue|except|default)$/.test(this.#tokens[index]?.text ?? ''))
        return false
    return true
  }
}

/** Where in a sorted list the first one is that is not smaller. */
export function lowerBound(list: readonly number[], value: number): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as number) < value) low = middle + 1
    else high = middle
  }
  return low
}
