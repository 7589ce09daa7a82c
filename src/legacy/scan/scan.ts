// Finds calls of the 2.4.x API in the text of a file, by a table of paths and methods. Sees literals and what one line joins
// to them, with constants of the same file, and skips comments. Does not follow functions or other files; `svc3 migrate
// usage` shows the calls that it misses.
import { callsAt, type MappedCall, unknownPart } from '../find.ts'
import type { Confidence, Finding, ScanOptions } from './finding.ts'
import { type Syntax, syntaxOf } from './kinds.ts'
import { type LineMethods, lineMethods, methodAt } from './methods.ts'
import { openApiCalls } from './openapi.ts'
import { marks, type Text, textsOf } from './texts.ts'

interface Line {
  readonly text: string
  readonly number: number
}

/** A text that ends with the path of a call. */
interface Match {
  /** The text before the path: an address, or the mark of a variable. Equal bases are the same service. */
  readonly base: string
  readonly calls: readonly MappedCall[]
  /** Other services have such a path too. */
  readonly isGeneric: boolean
  readonly isRooted: boolean
}

interface Candidate extends Match {
  readonly line: number
  readonly column: number
  readonly text: string
  readonly method: string | undefined
  readonly namesProduct: boolean
  /** The path is a plain word, which may be mentioned rather than called. */
  readonly isBare: boolean
}

const product = /orka|macstadium/i
const maxLineLength = 20_000
/** Longer texts are no paths. */
const maxValueLength = 600

export function scanText(file: string, text: string, options: ScanOptions = {}): Finding[] {
  const candidates =
    openApiCalls(text)?.flatMap(({ method, path, ...place }) => {
      const match = matchOf(path.replaceAll(/\{[^{}]*\}/g, '\uE000\uE001'))
      const rest = { ...place, text: `${method} ${path}`, method, namesProduct: false, isBare: false, base: 'openapi' }
      return match ? [{ ...match, ...rest }] : []
    }) ?? candidatesIn(text, syntaxOf(file))
  return classify(candidates, product.test(file) || product.test(text), options).map((each) => ({ file, ...each }))
}

/** Empties comments, and joins lines that a backslash continues. */
function linesOf(text: string, { line: comment, block }: Syntax): Line[] {
  const lines: Line[] = []
  let isInBlock = false
  let isContinued = false
  for (const [index, raw] of text.split('\n').entries()) {
    const start = raw.trimStart()
    const last = lines.at(-1)
    if (isContinued && last) lines[lines.length - 1] = { ...last, text: `${last.text}\n${raw}` }
    else {
      const opens: boolean = block !== undefined && !isInBlock && start.startsWith(block[0])
      const isComment = isInBlock || opens || (comment !== undefined && start.startsWith(comment))
      if (block !== undefined && (isInBlock || opens))
        isInBlock = !start.slice(opens ? block[0].length : 0).includes(block[1])
      lines.push({ text: isComment || raw.length > maxLineLength ? '' : raw, number: index + 1 })
    }
    isContinued = /\\\r?$/.test(raw) && (lines.at(-1)?.text.length ?? 0) < maxLineLength
  }
  return lines
}

const assignment = /^([^="'`(){}[\]\n]{1,120}?)["']?\s{0,8}(?::=|\?=|=(?![=>~])|:(?=\s))\s{0,8}/
/** `NAME=` and `--name=` before a value. */
const prefix = /^[\w-]{1,40}[=:](?!\/\/)/
/** Functions that return an address made from a text. */
const wrapper = /^(?:new\s+)?(?:\w+\.)*(?:Sprintf|format|URL|URI|Uri|create|join|urljoin)\(\s*/

/** The constant that a line defines. */
function definitionIn(text: string, texts: readonly Text[]): [name: string, value: string] | undefined {
  const [head = '', left = ''] = assignment.exec(text) ?? []
  const name = /(?<!\w)[A-Za-z_]\w*$/.exec((left.split(':')[0] ?? '').trimEnd())?.[0]
  if (name === undefined) return undefined
  const at = head.length + (wrapper.exec(text.slice(head.length, head.length + 100))?.[0].length ?? 0)
  const value = texts.find((each) => each.at <= at && each.end > at)
  if (value === undefined || !(value.isQuoted || /[/\uE000]/.test(value.value))) return undefined
  return [name, value.value.replace(prefix, '')]
}

function candidatesIn(text: string, syntax: Syntax): Candidate[] {
  const constants = new Map<string, string>()
  const resolved = (value: string): string => {
    if (!value.includes('\uE000')) return value
    let room = maxValueLength - value.length
    const whole = value.replaceAll(marks, (mark, name: string) => {
      const constant = value === mark || room < 0 ? undefined : constants.get(name)
      room -= constant === undefined ? 0 : constant.length - mark.length
      return constant ?? mark
    })
    return room < 0 ? value : whole
  }
  const lines = linesOf(text, syntax)
  const matches = lines.map((line) => {
    if (line.text.length < 2) return []
    const found = textsOf(line.text, syntax.line).map((each) => ({ ...each, value: resolved(each.value) }))
    const [name, value = ''] = definitionIn(line.text, found) ?? []
    if (name !== undefined && value !== `\uE000${name}\uE001`) constants.set(name, value)
    return found.flatMap(({ value, ...each }) => {
      const match = matchOf(value)
      return match === undefined ? [] : [{ ...each, ...match }]
    })
  })
  const known = new Map<number, LineMethods>()
  const methodsOf = (index: number): LineMethods | undefined => {
    const line = lines[index]
    if (line && !known.has(index)) known.set(index, lineMethods(line.text, syntax, matches[index]?.length !== 0))
    return known.get(index)
  }
  return lines.flatMap((line, index) => {
    const found = matches[index] ?? []
    return found.flatMap(({ at, end, isQuoted, ...match }): Candidate[] => {
      const possible = match.calls.map(({ call }) => call.method)
      const method = methodAt({ text: line.text, index, at, end }, possible, syntax, methodsOf)
      const isRequested = method !== undefined || (isQuoted && match.isRooted && !syntax.isData)
      if (match.base === '' && !isRequested) return []
      const source = line.text.slice(at, Math.min(end, at + 160)).split('\n', 1)[0] ?? ''
      const before = line.text.slice(0, at).split('\n')
      return [
        {
          ...match,
          line: line.number + before.length - 1,
          column: (before.at(-1)?.length ?? 0) + 1,
          text: source.trim(),
          method,
          namesProduct: product.test(source) || product.test(match.base),
          isBare: match.base === '' && !isQuoted,
        },
      ]
    })
  })
}

/** First parts of paths that only 2.4.x has, and of paths that other services have too, which need evidence. */
const own = 'resources/|default-base-image|validation-requirements|validate-license-key'
const shared = 'token|users|logs|health-check|version'
const ownPath = new RegExp(`^/(?:${own})`)
/** Cheaper than `form`, for all the texts that have no such path. */
const named = new RegExp(`${own}|${shared}`)
const base = String.raw`(?:https?:\/\/)?(?:[^@/\s]{1,100}@)?(?:[\w.:-]|\uE000[^\uE001]*\uE001){0,200}`
const form = new RegExp(
  `^(?<base>${base}(?:/[\\w.-]{1,60}){0,6}?)(?<path>/{0,2}(?:(?:${own}).*|(?:${shared})(?:[/?].*)?))$`,
)
const bareHost = /^(?:\d{1,3}(?:\.\d{1,3}){3}|localhost|[\w-]+(?:\.[\w-]+){2,}|[\w.-]+:\d+)(?::\d+)?(?:\/|$)/
/** Addresses of pages about the API. */
const documentation = /^(?:https?:\/\/)?(?:[\w-]*docs?|documentation|help|support|wiki|learn|developers?|www)\./

function matchOf(value: string): Match | undefined {
  if (value.length > maxValueLength || !named.test(value)) return undefined
  const { base = '', path = '' } =
    form.exec((value.replace(prefix, '').split('#', 1)[0] ?? '').replace(/(?<![.,;:])[.,;:]+$/, ''))?.groups ?? {}
  const isAddress = /^(?:https?:\/\/|\uE000)/.test(base) || bareHost.test(base)
  if (path === '' || (base !== '' && !isAddress) || documentation.test(base)) return undefined
  if (base !== '' && !path.startsWith('/') && !base.endsWith('\uE001')) return undefined
  const rooted = `/${path.replace(/^\/+/, '').replaceAll(marks, unknownPart)}`
  const known = (rooted.split('?')[0] ?? '').split('/').filter((part) => part !== '' && !part.includes(unknownPart))
  const isGeneric = !ownPath.test(rooted)
  if (known.length < (known[0] === 'resources' ? 2 : 1)) return undefined
  const calls = callsAt(rooted).toSorted((a, b) => unknowns(b, rooted) - unknowns(a, rooted))
  return calls.length === 0 ? undefined : { base, calls, isGeneric, isRooted: base !== '' || path.startsWith('/') }
}

/** How many unknown parts of the path are parameters of the call. Calls with more of them fit better. */
const unknowns = ({ call }: MappedCall, path: string): number => {
  const theirs = call.path.split('/')
  return path.split('/').filter((part, index) => part.includes(unknownPart) && theirs[index]?.startsWith('{')).length
}

const withoutScheme = (address: string): string => `${address.replace(/^https?:\/\//i, '').replace(/(?<!\/)\/+$/, '')}/`

/** Decides which candidates are calls, and how certain that is. */
function classify(
  candidates: readonly Candidate[],
  mentionsProduct: boolean,
  { baseUrl }: ScanOptions,
): Omit<Finding, 'file'>[] {
  const bases = new Set(candidates.filter(({ isGeneric }) => !isGeneric).map((each) => each.base))
  const seen = new Set<string>()
  return candidates.flatMap((candidate) => {
    const { base, calls, isGeneric, method, line, column, text } = candidate
    const isLiteral = base !== '' && base !== 'openapi' && !base.includes('\uE000')
    const isAtBaseUrl = baseUrl !== undefined && isLiteral && withoutScheme(base).startsWith(withoutScheme(baseUrl))
    if (baseUrl !== undefined && isLiteral && !isAtBaseUrl) return []
    const named = calls.find(({ call }) => call.method === method)
    // A shared path with another method belongs to another service.
    if (isGeneric && !named && (method !== undefined || base === '')) return []
    const isSame = bases.has(base)
    const isCertain = !isGeneric || isAtBaseUrl || candidate.namesProduct || (base !== '' && isSame)
    const isPossible = !base.includes('/') && (isSame || (candidate.isRooted && mentionsProduct))
    const evidence: Confidence | undefined = isCertain ? 'certain' : isPossible ? 'possible' : undefined
    const found = named ?? calls.find(({ call }) => call.method === 'GET') ?? calls[0]
    const key = `${line} ${found?.call.method} ${found?.call.path}`
    if (evidence === undefined || found === undefined || seen.has(key)) return []
    seen.add(key)
    const isPlain = named !== undefined && !candidate.isBare
    return [{ ...found, line, column, text, confidence: evidence === 'certain' && !isPlain ? 'likely' : evidence }]
  })
}
