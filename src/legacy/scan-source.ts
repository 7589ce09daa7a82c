// Legacy calls in programs and scripts: every place where a path of 2.4.x follows something that can be the address of a
// service. Parts that are only known when it runs stand as such in the path.
import { callsAt, findCall, unknownPart } from './find.ts'
import { type Finding, isGeneric, type ScanOptions } from './finding.ts'
import { methodAt } from './scan-method.ts'
import { assignments, expand, withoutComments } from './scan-text.ts'
import { withoutRepeats } from './scan-variables.ts'

/** The beginnings of all legacy paths. Without a slash before it only where nothing else can be meant. */
const roots =
  /\/(?:resources\/(?:vm|node|image|iso|cert|kube-account|ports)|token|users|logs|health-check|version|default-base-image|validation-requirements|validate-license-key)(?![\w.-])|(?<=["'`}])resources\/(?:(?:vm|node|image|iso|cert|kube-account)\/|(?:ports|kube-account)(?=["'`]))/g

interface Hit {
  readonly line: number
  readonly column: number
  readonly text: string
  readonly path: string
  /** What stands before the path: the same text is the same service. */
  readonly base: string
}

export function sourceFindings(kind: string, text: string, options: ScanOptions): Finding[] {
  const lines = withoutComments(kind, text)
  const values = assignments(lines)
  const own = lines.map((line, index) => hitsIn(line, index + 1, kind))
  const all = lines.flatMap((line, index) => {
    const expanded = expand(line, values)
    return expanded === line ? (own[index] ?? []) : hitsIn(expanded, index + 1, kind)
  })
  const hits = withoutRepeats(lines, own.flat(), all)
  const judged = hits.flatMap((hit): (Finding & { base: string })[] => {
    const method = methodAt(kind, lines, hit)
    const found = findCall(method, hit.path) ?? guess(method, hit.path)
    return found ? [{ ...found, line: hit.line, column: hit.column, text: hit.text, base: hit.base }] : []
  })
  return credible(judged, values, options)
}

/** A path with several methods, and none in sight: what is read most often, or else the first. */
const guess = (method: string | undefined, path: string) => {
  const calls = callsAt(path)
  return method === undefined ? (calls.find(({ call }) => call.method === 'GET') ?? calls[0]) : undefined
}

/** Generic paths count where the same service is surely meant; with a base address, nothing counts that goes elsewhere. */
export function credible<F extends Finding & { readonly base: string }>(
  findings: readonly F[],
  values: ReadonlyMap<string, string>,
  { baseUrl }: ScanOptions,
): Finding[] {
  const bases = new Set(findings.filter((each) => !isGeneric(each)).map(({ base }) => base))
  const addressOf = (base: string): string => values.get(base.replaceAll(/[^\w.]/g, '')) ?? base
  const isElsewhere = (base: string): boolean =>
    baseUrl !== undefined && /^https?:\/\/[\w.-]/.test(addressOf(base)) && !isSame(addressOf(base), baseUrl)
  const isHere = (base: string): boolean =>
    bases.has(base) || /orka/i.test(base) || /orka/i.test(addressOf(base)) || isSame(addressOf(base), baseUrl)
  return findings
    .filter((each) => !isElsewhere(each.base) && (!isGeneric(each) || isHere(each.base)))
    .map(({ base: _, ...finding }) => finding as Finding)
}

const isSame = (address: string, baseUrl: string | undefined): boolean =>
  baseUrl !== undefined && `${address.replace(/\/+$/, '')}/`.startsWith(`${baseUrl.replace(/\/+$/, '')}/`)

export function hitsIn(line: string, number: number, kind: string): Hit[] {
  const hits: Hit[] = []
  for (const match of line.matchAll(roots)) {
    const before = line.slice(0, match.index)
    const base = baseBefore(before) ?? (kind === 'text' && written.test(before) ? 'written' : undefined)
    if (base === undefined) continue
    const [raw, path] = pathFrom(line.slice(match.index))
    if (callsAt(path).length === 0) continue
    hits.push({ line: number, column: match.index + 1, text: raw, path, base })
  }
  return hits
}

type BaseForm = readonly [RegExp, (match: RegExpExecArray) => string]
/** What can stand before a path, as text that names the service. */
const baseForms: readonly BaseForm[] = [
  // https://host:port/prefix, with variables in it or not.
  [/(https?:\/\/[^\s'"`|<>]+)$/i, ([, url = '']) => url],
  // ${BASE}, {{base}}, #{base}, {self.base}, <base>
  [/(?:\$?\{\{?\s*|#\{)([^{}]*?)\s*\}\}?$/, ([, name = '']) => name.trim() || 'literal'],
  [/\$\(([^()]*)\)$/, ([, name = '']) => name],
  [/\$(\w+)$/, ([, name = '']) => name],
  [/%[sv]$/, () => 'literal'],
  // host:port or an address, right after a blank or a quote.
  [/(?:^|[\s'"`])((?:\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)+|localhost)(?::\d+)?|[\w-]+:\d+)$/, ([, host = '']) => host],
  // base + "/path", base . '/path', base, "/path"
  [/([\w.$>\]-]+(?:\(\))?)\s*(?:\+|\.|<<)\s*[frbu]?["'`]$/i, ([, name = '']) => name.replace(/^\$|^this\.|^self\.|^@/g, '')],
  // client.post("/path": whoever is called knows the service.
  [/([\w.$@:>-]+?)(?:(?:\.|->|::)(?:get|post|put|delete|del|request))?\s*[( ][^()]*[frbu]?["'`]$/i, ([, name = '']) => `${name}()`],
  [/[frbu]?["'`]$/i, () => 'literal'],
] // biome-ignore format: a table

/** A request as it is written down, outside of programs. */
const written = /(?:^|[\s"'`])(?:GET|POST|PUT|DELETE)\s+$/

function baseBefore(before: string): string | undefined {
  for (const [form, nameOf] of baseForms) {
    const match = form.exec(before)
    if (match) return nameOf(match).replace(/^(?:\$|this\.|self\.|@)/, '')
  }
  return undefined
}

const part =
  /\$\{\{?[^{}]*\}\}?|#\{[^{}]*\}|\{\{[^{}]*\}\}|\{[^{}\s"']*\}|\$\([^()]*\)|\$\w+|%[sdv]|<\w+>|[^\s"'`)(;,<>\\|&{}]|&(?=\w+=)/y

/** The path as far as it goes, and the same with what is not known marked. */
function pathFrom(text: string): [raw: string, path: string] {
  let path = ''
  let at = 0
  for (;;) {
    part.lastIndex = at
    const piece = part.exec(text)?.[0]
    if (piece === undefined) break
    at += piece.length
    path += piece.length > 1 && piece !== '$ungrouped' ? unknownPart : piece
  }
  // The full stop of a sentence is no part of it.
  const [place = ''] = path.replace(/[.:]$/, '').split('#')
  const rooted = place.startsWith('/') ? place : `/${place}`
  // "/status/" + name: what follows the quote is the last part.
  const isOpen = rooted.endsWith('/') && /^["'`]\s*(?:\+|\.|,|%|<<)/.test(text.slice(at)) && !path.includes('?')
  return [text.slice(0, at), isOpen ? rooted + unknownPart : rooted]
}
