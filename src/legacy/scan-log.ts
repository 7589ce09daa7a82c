// Legacy calls in an access log: common or combined format, or a JSON object a line. Read once, as it comes; what is kept
// is one finding per call, with its first line and how often it is there, so that memory does not grow with the log.
import { type Found, findCall } from './find.ts'
import { type Finding, isGeneric, type ScanOptions } from './finding.ts'

/** Lines without any of these are not looked at. */
const candidate =
  /\/(?:resources\/|token|users|logs|health-check|version|default-base-image|validation-requirements|validate-license-key)/g
const requestForm = /(?:^|["\s])(GET|POST|PUT|DELETE|HEAD|PATCH) (\S+?)(?:["\s]|$)/
const jsonMethods = ['method', 'request_method', 'requestMethod', 'verb', 'http_method', 'http.method']
const jsonPaths = [
  'path',
  'uri',
  'url',
  'request_uri',
  'requestUri',
  'request_path',
  'target',
  'http.target',
  'http.path',
]

/** The same few requests come again and again. */
const maxKnown = 20_000

interface Seen {
  readonly found: Found
  readonly line: number
  readonly text: string
  count: number
}

export async function logFindings(
  chunks: AsyncIterable<Uint8Array>,
  { baseUrl }: ScanOptions = {},
): Promise<Finding[]> {
  const prefix = baseUrl === undefined ? '' : prefixOf(baseUrl)
  const seen = new Map<string, Seen>()
  const known = new Map<string, Found | undefined>()
  let rest = ''
  let linesBefore = 0

  const lookUp = (method: string, target: string): Found | undefined => {
    const key = `${method} ${target}`
    if (known.has(key)) return known.get(key)
    if (known.size >= maxKnown) known.clear()
    const found = callOf(method, target, prefix)
    known.set(key, found)
    return found
  }
  const scan = (text: string): void => {
    candidate.lastIndex = 0
    for (let match = candidate.exec(text); match; match = candidate.exec(text)) {
      const start = text.lastIndexOf('\n', match.index) + 1
      const newline = text.indexOf('\n', match.index)
      const end = newline === -1 ? text.length : newline
      candidate.lastIndex = end
      const line = text.slice(start, end)
      const [method, target] = requestIn(line)
      const found = method === undefined || target === undefined ? undefined : lookUp(method, target)
      if (!found) continue
      const name = `${found.call.method} ${found.call.path}`
      const known = seen.get(name)
      if (known) known.count += 1
      else
        seen.set(name, {
          found,
          line: linesBefore + countLines(text, start) + 1,
          text: `${method} ${target}`,
          count: 1,
        })
    }
    linesBefore += countLines(text, text.length)
  }

  for await (const chunk of chunks) {
    // One byte, one character: positions hold, and nothing is looked at that is not ASCII.
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
    const end = text.lastIndexOf('\n') + 1
    if (end === 0 && rest.length < maxLineLength) rest += text
    else {
      scan(rest + text.slice(0, end))
      rest = text.slice(end)
    }
  }
  scan(rest)
  const findings = [...seen.values()].map(({ found, line, text, count }) => ({
    ...found,
    line,
    column: 1,
    text,
    count,
  }))
  const isCertain = baseUrl !== undefined || findings.some((each) => !isGeneric(each))
  return findings.filter((each) => isCertain || !isGeneric(each)).toSorted((a, b) => a.line - b.line)
}

/** A log without line ends is no log: it is taken in pieces. */
const maxLineLength = 2 ** 22

function countLines(text: string, end: number): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

const prefixOf = (baseUrl: string): string =>
  URL.canParse(baseUrl) ? new URL(baseUrl).pathname.replace(/\/+$/, '') : ''

function callOf(method: string, target: string, prefix: string): Found | undefined {
  const path = target.replace(/^https?:\/\/[^/]*/, '')
  if (!path.startsWith(`${prefix}/`)) return undefined
  // Another method than the path has was refused then, and is no call to migrate.
  const found = findCall(method === 'HEAD' ? 'GET' : method, decoded(path.slice(prefix.length)))
  return found?.call.method === (method === 'HEAD' ? 'GET' : method) ? found : undefined
}

function decoded(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

type Request = readonly [method: string | undefined, target: string | undefined]

function requestIn(line: string): Request {
  if (line.charCodeAt(0) === 123) {
    const found = jsonRequest(line)
    if (found) return found
  }
  const match = requestForm.exec(line)
  return [match?.[1], match?.[2]]
}

function jsonRequest(line: string): Request | undefined {
  let value: Record<string, unknown>
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  const nested = [value, value.request, value.req, value.http, value.httpRequest].filter(
    (each): each is Record<string, unknown> => typeof each === 'object' && each !== null,
  )
  const text = (names: readonly string[]): string | undefined =>
    nested.flatMap((each) => names.map((name) => each[name])).find((each) => typeof each === 'string') as
      | string
      | undefined
  const method = text(jsonMethods)
  const target = text(jsonPaths)
  if (method !== undefined && target !== undefined) return [method.toUpperCase(), target]
  // nginx: "request":"GET /path HTTP/1.1"
  return typeof value.request === 'string' ? undefined : [undefined, undefined]
}
