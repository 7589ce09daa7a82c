// By which method an address in a program is asked: by the call that it is given to, what else that call is given, what
// is called on the result; otherwise by the calls that the variable is given to which holds it.
import { isKeyword } from './expressions.ts'
import type { Language } from './languages.ts'
import type { Token } from './lex.ts'
import { isName, lastOf, nameOf, wordOf } from './template.ts'
import { isMethodKey, methodOfCallee, methodOfName, methodOfWord } from './verbs.ts'

interface MethodUse {
  readonly method: string | undefined
  /** What it is given to: `conn.get`. */
  readonly callee: string
}

/** How far it is looked, in tokens and steps: what belongs together is near. */
const reach = { group: 100, statement: 60, chain: 6, levels: 4, uses: 4, ahead: 500 } as const

export class Methods {
  readonly #tokens: readonly Token[]
  readonly #language: Language
  readonly #places = new Map<string, number[]>()
  readonly #sayings: (string | undefined)[] = []
  readonly #uses: (readonly string[])[] = []

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

  /** Of the expression from `start` to before `end`: one that fits, or the nearest. */
  methodOf(start: number, end: number, isFitting: (method: string) => boolean): MethodUse {
    let nearest: string | undefined
    for (const method of this.#near(start, end)) {
      if (method !== undefined && isFitting(method)) return { method, callee: this.#calleeAround(start) }
      nearest ??= method
    }
    return { method: nearest ?? this.#inStatement(start, end), callee: this.#calleeAround(start) }
  }

  /** The brackets around a token, up to the block that it is in. */
  *#bracketsAround(
    start: number,
  ): Generator<{ readonly open: number; readonly bracket: Token; readonly isBlock: boolean }> {
    let open = this.#tokens[start]?.parent ?? -1
    for (let level = 0; level < reach.levels && open !== -1; level++) {
      const bracket = this.#tokens[open] as Token
      const isBlock = bracket.text === '{' && this.#tokens[open + 1]?.statement !== bracket.statement
      yield { open, bracket, isBlock }
      if (isBlock) return
      open = bracket.parent
    }
  }

  #calleeAround(start: number): string {
    for (const { open, bracket } of this.#bracketsAround(start)) {
      const callee = bracket.text === '(' ? this.#calleeOf(open) : ''
      if (callee !== '' && !isKeyword(callee)) return callee
    }
    return ''
  }

  *#near(start: number, end: number): Generator<string | undefined> {
    let [from, to] = [start, end]
    for (const { open, bracket, isBlock } of this.#bracketsAround(start)) {
      if (isBlock) {
        if (this.#language.trailingClosures) yield this.#ofClosure(open)
        return
      }
      yield methodOfCallee(this.#calleeOf(open))
      yield* this.#inGroup(open, from, to)
      yield* this.#around(open, bracket.match)
      from = open
      to = bracket.match === -1 ? to : bracket.match + 1
    }
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
      for (let skipped = 0; skipped < reach.levels && /^[!)]$/.test(this.#tokens[at]?.text ?? ''); skipped++) at += 1
      if (this.#tokens[at]?.text === '{' && this.#language.trailingClosures) yield* this.#inGroup(at)
      if (!/^(?:\.|\?\.|&\.|->)$/.test(this.#tokens[at]?.text ?? '')) break
      const name = this.#tokens[at + 1]?.text ?? ''
      const bracket = this.#tokens[at + 2]
      if (bracket?.text !== '(' || bracket.match === -1) break
      yield isMethodKey(name) ? this.#inGroup(at + 2)[0] : methodOfCallee(name)
      at = bracket.match + 1
    }
    // Backwards: the name before a bracket, a dot, and the bracket before that.
    at = open - 1
    for (let step = 0; step < reach.chain; step++) {
      const dot = this.#tokens[at - 1]
      const bracket = this.#tokens[at - 2]
      if (dot?.text !== '.' || bracket?.kind !== 'close' || bracket.match === -1) break
      const name = this.#calleeOf(bracket.match)
      if (isMethodKey(name)) yield* this.#inGroup(bracket.match)
      yield methodOfCallee(name)
      at = bracket.match - 1
    }
  }

  /** Methods that stand beside the expression in a bracket, the nearest first. */
  #inGroup(open: number, from = -1, to = -1): string[] {
    const found: string[] = []
    const look = (at: number): void => {
      const said = this.#said(at)
      if (said !== undefined) found.push(said)
    }
    const close = this.#tokens[open]?.match ?? -1
    const end = Math.min(close === -1 ? this.#tokens.length : close, Math.max(to, open) + reach.group)
    for (let at = from - 1; at > open && from - at < reach.group; at--) look(at)
    for (let at = Math.max(to, open + 1); at < end; at++) {
      const token = this.#tokens[at] as Token
      // What is inside of further calls is theirs; settings in braces are not.
      if (token.kind === 'open' && token.text === '(' && token.match > at) at = token.match
      else look(at)
    }
    return found
  }

  /** The method that a token says; remembered, because whatever is near asks. */
  #said(at: number): string | undefined {
    if (!(at in this.#sayings)) this.#sayings[at] = this.#say(at)
    return this.#sayings[at]
  }

  #say(at: number): string | undefined {
    const token = this.#tokens[at] as Token
    const before = this.#tokens[at - 1]
    const isKeyed = before !== undefined && /^(?:[:=]|=>|:=)$/.test(before.text) && this.#isKey(at - 2)
    if (token.kind === 'string') {
      const word = wordOf(token.parts)
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
    const last = [at, at - 1, at - 2].find((each) => !/^[:(-]$/.test(this.#tokens[each]?.text ?? ''))
    const token = this.#tokens[last ?? -1]
    const text = token?.kind === 'string' ? wordOf(token.parts) : token?.kind === 'name' ? token.text : ''
    return text.length < 40 && isMethodKey(text)
  }

  /** `http.post { url(…) }`, `client.request(Method.DELETE) { … }` */
  #ofClosure(open: number): string | undefined {
    const before = this.#tokens[open - 1]
    if (before?.kind === 'name') return methodOfCallee(before.text)
    if (before?.text !== ')' || before.match === -1 || this.#tokens[before.match - 2]?.kind === 'name') return undefined
    const name = this.#calleeOf(before.match)
    if (/^(?:if|while|for|switch|catch|when|guard)$/.test(name)) return undefined
    return methodOfCallee(name) ?? this.#inGroup(before.match)[0]
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
    for (const whole of new Set(names)) {
      const [name = ''] = whole.split('.')
      const before = whole.includes('.') ? this.#setBefore(name, from) : undefined
      if (before !== undefined && isFitting(before)) found.add(before)
      const places = this.#places.get(name) ?? []
      let first = lowerBound(places, from)
      for (let seen = 0; seen < reach.uses && first < places.length; seen++, first++) {
        const at = places[first] as number
        if (at >= until || at - from > reach.ahead || this.#isAssignedAgain(at, from)) break
        const said = this.#ofUse(at).find(isFitting)
        if (said !== undefined) found.add(said)
      }
    }
    return [...found]
  }

  /** Methods by which a variable is asked at a place; remembered, because every assignment before it asks. */
  #ofUse(at: number): readonly string[] {
    const all = (): (string | undefined)[] => [
      ...this.#near(at, at + 1),
      this.#onVariable(at),
      this.#inStatement(at, at + 1),
    ]
    this.#uses[at] ??= [...new Set(all())].filter((method) => method !== undefined)
    return this.#uses[at]
  }

  /** `connection.setRequestMethod("DELETE")`, `request.httpMethod = "POST"`. */
  #onVariable(at: number): string | undefined {
    const token = this.#tokens[at] as Token
    if (token.kind !== 'name' || !isMethodKey(token.text)) return undefined
    const next = this.#tokens[at + 1]
    if (next?.text === '=') return this.#said(at + 2)
    return next?.text === '(' ? this.#inGroup(at + 1)[0] : undefined
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
