// Legacy calls in shell: the commands that make requests, with what their variables hold.
import type { Constants, Definition } from './constants.ts'
import type { Candidate } from './finding.ts'
import { matchOf } from './match.ts'
import type { Source } from './source.ts'
import { isName, isTooLong, type Part, type Template, textOf } from './template.ts'
import { isMethodKey, methodOfWord } from './verbs.ts'
import { type Command, commandsOf, type Word } from './words.ts'

/** Where a line and a column are, in one number. */
const placeOf = (source: Source, at: number): number =>
  source.lineOf(at) * 4_096 + Math.min(4_095, at - source.lineStart(at))

const commandPrefixes = new Set(['sudo', 'time', 'env', 'exec', 'command', 'if', 'while', 'until', 'then', 'do', 'else', 'elif', '!', 'nohup', 'RUN', 'CMD', 'HEALTHCHECK', '-', '$', '+', 'eval', 'function']) // biome-ignore format: a list
const declares = /^(?:export|local|declare|readonly|typeset|ENV|ARG|set|setenv|@\w+)$/
/** They show, copy or look for a text. */
const ignored =
  /^(?:echo|printf|cp|mv|ls|rsync|tar|cat|cd|mkdir|rm|rmdir|source|\.|grep|sed|awk|tail|head|test|\[|\[\[|scp|find|kubectl|docker|COPY|ADD|WORKDIR|FROM|VOLUME|chmod|chown|touch|ln|log|info|warn|error|die|make|jq|open|export|return|trap|Get-\w+|Write-\w+|import|case|for|select|git)$/
const tools = /^(?:curl|wget|http|https|xh|httpie|invoke-restmethod|invoke-webrequest|irm|iwr)$/

/** Tells the constants what a script gives names to. */
export function shellDefine(source: Source, constants: Constants): void {
  for (const { words } of commandsOf(source.text))
    for (const each of assignmentsIn(words)) define(source, constants, each)
}

interface Assignment {
  readonly name: string
  readonly value: Template
  readonly at: number
}

function define(source: Source, constants: Constants, { name, value, at }: Assignment): void {
  const line = source.lineOf(at)
  const isConstant = /^[A-Z]/.test(name)
  constants.add({
    name,
    value,
    file: source.file,
    line,
    at: placeOf(source, at),
    until: Number.POSITIVE_INFINITY,
    isConstant,
  })
}

function assignmentsIn(words: readonly Word[]): Assignment[] {
  const found: Assignment[] = []
  const [first, second, third] = words
  const name = first ? textOf(first.parts) : ''
  if (second && third && /^[?:]{0,2}=$/.test(textOf(second.parts)) && /^[@$]?[\w.]+$/.test(name))
    return [{ name: name.replace(/^@/, ''), value: third.parts, at: third.at }]
  for (const word of words) {
    const [head] = word.parts
    const match = typeof head === 'string' ? /^([A-Za-z_][\w.]*)(?:\+?=)/.exec(head) : null
    if (match && typeof head === 'string')
      found.push({
        name: match[1] ?? '',
        value: [head.slice(match[0].length), ...word.parts.slice(1)].filter((part) => part !== ''),
        at: word.at,
      })
    else if (!declares.test(textOf(word.parts))) break
  }
  return found
}

/** `fixed`: the place in a program that the script stands in, by which the program's variables are known. */
export function shellCandidates(
  source: Source,
  constants: Constants,
  isUsed: (definition: Definition, path: string) => void,
  fixed?: number,
): Candidate[] {
  return commandsOf(source.text).flatMap((command) => candidatesIn(command, source, constants, isUsed, fixed))
}

function candidatesIn(
  { words }: Command,
  source: Source,
  constants: Constants,
  isUsed: (definition: Definition, path: string) => void,
  fixed: number | undefined,
): Candidate[] {
  const candidates: Candidate[] = []
  const mentionsProduct = words.some(namesProduct)
  const resolve = ({ parts, at }: Pick<Word, 'parts' | 'at'>): { parts: Template; used: readonly Definition[] } =>
    isTooLong(parts) ? { parts: [], used: [] } : constants.resolve(parts, source.file, fixed ?? placeOf(source, at))
  const add = (word: Pick<Word, 'parts' | 'at'>, more: Pick<Candidate, 'method' | 'isRequest' | 'receiver'>): void => {
    const { parts, used } = resolve(word)
    const match = matchOf(parts)
    if (!match || (match.isGeneric && match.baseKind === 'none' && !more.isRequest)) return
    if (more.isRequest) for (const each of used) isUsed(each, match.path)
    const { at } = word
    const text = source.snippet(at, at + 160).split(/\s/, 1)[0] ?? ''
    candidates.push({
      ...source.place(at),
      text,
      match,
      mentionsProduct,
      ...more,
    })
  }
  for (const { value, at } of assignmentsIn(words))
    add({ parts: value, at }, { method: undefined, isRequest: false, receiver: '' })
  const name = words
    .map(({ parts }) => textOf(parts))
    .find((word) => !commandPrefixes.has(word) && !/^[\w.]+=/.test(word))
    ?.replace(/^[@-]/, '')
  const tool = words.findIndex(({ parts }) =>
    tools.test(
      textOf(parts)
        .replace(/^[@-]+/, '')
        .replace(/^.*\//, '')
        .toLowerCase(),
    ),
  )
  const isTool = tool !== -1 && words.slice(0, tool).every(({ parts }) => !ignored.test(textOf(parts)))
  if (isTool) {
    const given = words.slice(tool).flatMap((word, index) => (index === 0 ? [word] : expanded(word, resolve)))
    const method = commandMethod(
      given.map(({ parts }) => (parts.some(isName) && textOf(parts) === '' ? unknownWord : textOf(parts))),
    )
    for (const word of addressesOf(given)) add(word, { method, isRequest: true, receiver: 'curl' })
  } else if (name !== undefined && !ignored.test(name) && assignmentsIn(words).length === 0) {
    const said = words.map(({ parts }) => textOf(parts)).find((word) => /^(?:GET|POST|PUT|DELETE)$/.test(word))
    for (const word of words.slice(1))
      if (said !== undefined || word.parts.some((part) => typeof part === 'string' && part.includes('/')))
        add(word, { method: said, isRequest: said !== undefined, receiver: name })
  }
  return candidates
}

const unknownWord = '\0'
const namesProduct = ({ parts }: Word): boolean =>
  parts.some((part: Part) => /orka/i.test(isName(part) ? part.name : part))

/** Options that a variable holds: `post=(-s -X POST)`. */
function expanded(word: Word, resolve: (word: Word) => { parts: Template }): Word[] {
  if (word.parts.length !== 1 || !isName(word.parts[0])) return [word]
  const { parts } = resolve(word)
  const text = textOf(parts)
  if (!/^\s*-/.test(text)) return [word]
  return text
    .trim()
    .split(/\s+/, 50)
    .map((each) => ({ parts: [each], at: word.at }))
}

/** Options whose next word is no address. */
const curlValue =
  /^(?:-[sSfkLgivnNqRaj#046]*[HdoubcAeFTXmKwxzC]|--(?:header|data[\w-]*|json|form[\w-]*|output|user[\w-]*|cookie[\w-]*|referer|request|method|max-time|connect-timeout|retry[\w-]*|post-data|post-file|body-data|body-file|upload-file|cacert|cert|key|proxy|write-out|resolve|config))$/
const cmdletValue = /^-(?:Method|Headers|Body|ContentType|InFile|OutFile|Credential)$/i
const takesValue = (word: string): boolean => curlValue.test(word) || cmdletValue.test(word)

function addressesOf(words: readonly Word[]): Word[] {
  const found: Word[] = []
  for (let index = 1; index < words.length; index++) {
    const word = words[index] as Word
    const text = textOf(word.parts)
    if (takesValue(text)) index += 1
    else if (text.startsWith('--url='))
      found.push({ parts: [String(word.parts[0]).slice(6), ...word.parts.slice(1)], at: word.at })
    else if (!text.startsWith('-')) found.push(word)
  }
  return found
}

const shorts = '[sSfkLgivnNqRaj#046]*'
const methodOption = new RegExp(`^(?:-${shorts}X|--request|--method|-Method)=?(.*)$`)
const dataOption = new RegExp(
  `^(?:-${shorts}d.*|--data.*|--json.*|-${shorts}F.*|--form.*|--post-data.*|--post-file.*)$`,
)

/** Of a command by its words, the tool first. Undefined: it is said, but not known here. */
export function commandMethod(words: readonly string[]): string | undefined {
  const isHttpie = /^(?:http|https|xh|httpie)$/.test(words[0] ?? '')
  let implied = 'GET'
  for (let index = 1; index < words.length; index++) {
    const word = words[index] as string
    const option = methodOption.exec(word)
    if (option || (word.startsWith('-') && isMethodKey(word)))
      return methodOfWord(option?.[1] || (words[index + 1] ?? ''))
    if (isHttpie && methodOfWord(word) !== undefined) return methodOfWord(word)
    if (/^-[a-zA-Z]*G$|^--get$/.test(word)) return 'GET'
    if (dataOption.test(word) || (isHttpie && index > 1 && /^[\w-]+:?=/.test(word))) implied = 'POST'
    else if (/^(?:-T|--upload-file)/.test(word)) implied = 'PUT'
    if (takesValue(word)) index += 1
  }
  return implied
}
