// Reads shell as commands of words, over quotes, substitutions and continued lines. Every character is read a bounded
// number of times: a quote that nothing closes is tried once, and substitutions are followed to a fixed depth.
import { joined, nameOf, type Part, type Template, withInsertions } from './template.ts'

export interface Word {
  readonly parts: Template
  readonly at: number
}

export interface Command {
  readonly words: readonly Word[]
}

const maxDepth = 4
const variable = /\$\$?([A-Za-z_]\w*)/y
const special = /\$[\d@*#?!-]/y
const macro = /\$\(([A-Za-z_][\w.-]*)\)/y
const braces = /\{\{\s{0,4}([\w.\-$]{0,100})\s{0,4}(?:\|[^{}\n]{0,100})?\}\}/y
const mark = /\uE000([^\uE000\uE001]*)\uE001/y
const heredoc = /<<-?\s{0,4}(["']?)([A-Za-z_]\w*)\1/y

export const commandsOf = (text: string): Command[] => new Reader(text).run()

/** A text without blanks that means anything, as between double quotes. */
export const templateOf = (text: string): Template => new Reader(text).quoted()

class Reader {
  readonly #text: string
  readonly #commands: Command[] = []
  #at = 0
  #isDeadDouble = false
  #isInDouble = false
  #isDeadSingle = false
  #pending: string[] = []
  /** How many may be looked through without getting on. */
  #heredocs = 50

  constructor(text: string) {
    this.#text = text
  }

  run(): Command[] {
    while (this.#at < this.#text.length) {
      this.#list(0)
      // A bracket that nothing opened.
      this.#at += 1
    }
    return this.#commands
  }

  quoted(): Template {
    const parts: Part[] = []
    while (this.#at < this.#text.length) this.#piece(parts, 0)
    return joined(parts)
  }

  /** Commands up to a closing bracket, or the end. */
  #list(depth: number): void {
    let words: Word[] = []
    const finish = (): void => {
      if (words.length > 0) this.#commands.push({ words })
      words = []
    }
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string
      if (character === ')') break
      if (character === ' ' || character === '\t' || character === '\r') this.#at += 1
      else if (character === '\\' && /[\r\n]/.test(this.#text[this.#at + 1] ?? '')) this.#at += 2
      else if (character === '\n') {
        this.#at += 1
        finish()
        if (this.#pending.length > 0) this.#skipHeredocs()
      } else if (character === '#') this.#skipLine()
      else if (character === '<' && this.#heredoc()) continue
      else if (';&|(){}<>'.includes(character) && !(character === '{' && this.#text[this.#at + 1] === '{')) {
        this.#at += 1
        if (character !== '<' && character !== '>' && character !== '{' && character !== '}') finish()
      } else {
        const word = this.#word(depth)
        words.push(word)
        if (this.#text[this.#at] === '(' && /=$/.test(String(word.parts.at(-1))))
          words[words.length - 1] = this.#array(word, depth)
      }
    }
    finish()
  }

  #skipLine(): void {
    const end = this.#text.indexOf('\n', this.#at)
    this.#at = end === -1 ? this.#text.length : end
  }

  #heredoc(): boolean {
    heredoc.lastIndex = this.#at
    const match = heredoc.exec(this.#text)
    if (!match) return false
    this.#pending.push(match[2] ?? '')
    this.#at += match[0].length
    return true
  }

  /** What is fed to a command is not called, unless it is a script itself; then it is read like one. */
  #skipHeredocs(): void {
    for (const mark of this.#pending.splice(0)) {
      if (this.#heredocs === 0) return
      let end = -1
      let isScript = false
      for (let at = this.#at; at < this.#text.length && end === -1; ) {
        const lineEnd = this.#text.indexOf('\n', at)
        const line = this.#text.slice(at, lineEnd === -1 ? undefined : lineEnd)
        if (line.trim() === mark) end = at + line.length
        isScript ||= /\b(?:curl|wget)\s/.test(line)
        at = lineEnd === -1 ? this.#text.length : lineEnd + 1
      }
      if (end !== -1 && !isScript) this.#at = end
      else this.#heredocs -= 1
    }
  }

  #array(word: Word, depth: number): Word {
    this.#at += 1
    const before = this.#commands.length
    const parts: Part[] = [...word.parts]
    while (this.#at < this.#text.length && this.#text[this.#at] !== ')') {
      if (/[\s;&|(<>{}]/.test(this.#text[this.#at] as string)) this.#at += 1
      else {
        parts.push(' ')
        for (const part of this.#word(depth).parts) parts.push(part)
      }
      if (this.#commands.length > before + 1_000) break
    }
    this.#at += 1
    return { parts: joined(parts), at: word.at }
  }

  #word(depth: number): Word {
    const start = this.#at
    const parts: Part[] = []
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string
      if (/[\s;&|()<>]/.test(character)) break
      if (character === '\\') {
        if (/[\r\n]/.test(this.#text[this.#at + 1] ?? '')) break
        parts.push(this.#text[this.#at + 1] ?? '')
        this.#at += 2
      } else if (character === "'" && !this.#isDeadSingle) this.#single(parts)
      else if (character === '"' && !this.#isDeadDouble) this.#double(parts, depth)
      else this.#piece(parts, depth)
    }
    if (this.#at === start) this.#at += 1
    return { parts: joined(parts), at: start }
  }

  #single(parts: Part[]): void {
    const end = this.#text.indexOf("'", this.#at + 1)
    if (end === -1) {
      this.#isDeadSingle = true
      return
    }
    for (const part of withInsertions(this.#text.slice(this.#at + 1, end))) parts.push(part)
    this.#at = end + 1
  }

  #double(parts: Part[], depth: number): void {
    const [start, commands, isOutermost] = [this.#at, this.#commands.length, !this.#isInDouble]
    this.#isInDouble = true
    const inside: Part[] = []
    this.#at += 1
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string
      if (character === '"') {
        this.#at += 1
        for (const part of inside) parts.push(part)
        this.#isInDouble = !isOutermost
        return
      }
      if (character === '\\') {
        inside.push(this.#text[this.#at + 1] ?? '')
        this.#at += 2
      } else this.#piece(inside, depth)
    }
    this.#isDeadDouble = true
    // Those around it end here, too: only the outermost is read again.
    if (!isOutermost) return
    this.#isInDouble = false
    this.#at = start
    this.#commands.length = commands
  }

  /** A variable, a substitution, or plain characters. */
  #piece(parts: Part[], depth: number): void {
    const character = this.#text[this.#at] as string
    if (character === '$' && this.#expansion(parts, depth)) return
    if (character === '{' && this.#matched(braces, parts)) return
    if (character === '\uE000' && this.#matched(mark, parts)) return
    if (character === '`' && depth < maxDepth) {
      const end = this.#text.indexOf('`', this.#at + 1)
      if (end !== -1) {
        const inner = new Reader(this.#text.slice(this.#at + 1, end))
        const offset = this.#at + 1
        for (const { words } of inner.run())
          this.#commands.push({ words: words.map((word) => ({ ...word, at: word.at + offset })) })
        parts.push({ name: '' })
        this.#at = end + 1
        return
      }
    }
    plain.lastIndex = this.#at + 1
    const more = plain.exec(this.#text)?.[0] ?? ''
    parts.push(character + more)
    this.#at += 1 + more.length
  }

  #matched(form: RegExp, parts: Part[]): boolean {
    form.lastIndex = this.#at
    const match = form.exec(this.#text)
    if (!match) return false
    parts.push({ name: nameOf(match[1] ?? '') })
    this.#at += match[0].length
    return true
  }

  #expansion(parts: Part[], depth: number): boolean {
    if (this.#text.startsWith('$ungrouped', this.#at)) return false
    if (this.#matched(variable, parts) || this.#matched(special, parts) || this.#matched(macro, parts)) return true
    const next = this.#text[this.#at + 1]
    if (next === '{') return this.#braced(parts)
    if (next !== '(' || depth >= maxDepth) return false
    this.#at += 2
    this.#list(depth + 1)
    this.#at += 1
    parts.push({ name: '' })
    return true
  }

  /** `${NAME:-default}`, `${{ env.NAME }}` */
  #braced(parts: Part[]): boolean {
    let open = 0
    for (let at = this.#at + 1; at < Math.min(this.#text.length, this.#at + 120); at++) {
      if (this.#text[at] === '{') open += 1
      else if (this.#text[at] === '}' && --open === 0) {
        parts.push({
          name: nameOf(
            this.#text
              .slice(this.#at + 2, at)
              .replace(/^\{|\}$|\[[@*]\]$/g, '')
              .trim(),
          ),
        })
        this.#at = at + 1
        return true
      } else if (this.#text[at] === '\n') break
    }
    return false
  }
}

const plain = /[\w./:=%?@,+-]*/y
