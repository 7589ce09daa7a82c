// Legacy calls in an access log: common or combined format, or a JSON object a line. Read once, as it comes; what is kept
// is one finding per call, with its first line and how often it is there, so that memory does not grow with the log.
import { callTo, type Found } from '../find.ts'
import type { Finding, ScanOptions } from './finding.ts'

/** Lines without any of these are not looked at. */
const legacyPath =
  /\/(?:resources\/|token|users|logs|health-check|version|default-base-image|validation-requirements|validate-license-key)/
const requestForm = /(?:^|["\s])(GET|POST|PUT|DELETE|HEAD|PATCH) (\S+?)(?:["\s]|$)/
/** By form, not by parsing: it is four times as quick, and what is escaped is no call. */
const jsonMethod = /"(?:method|request_method|requestMethod|verb|http_method|http\.method)"\s*:\s*"([A-Za-z]+)"/
const jsonPath =
  /"(?:path|uri|url|request_uri|requestUri|request_path|target|http\.target|http\.path)"\s*:\s*"([^"\\]*)"/
const jsonRequestLine = /"request"\s*:\s*"([A-Z]+) ([^" ]+)/

/** Paths that other services have too: they need evidence that it is this one. */
const isGeneric = ({ call: { path } }: Found): boolean => /^\/(?:token|users|logs|version|health-check)\b/.test(path)

export async function logFindings(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  { baseUrl }: ScanOptions = {},
): Promise<Finding[]> {
  const prefix = baseUrl === undefined ? '' : prefixOf(baseUrl)
  const seen = new Map<Found['call'], Finding & { count: number }>()
  let number = 0
  const scan = (line: string): void => {
    number += 1
    if (!legacyPath.test(line)) return
    const [method, target] = requestIn(line)
    const found = method === undefined || target === undefined ? undefined : callOf(method, target, prefix)
    if (!found) return
    const known = seen.get(found.call)
    if (known) known.count += 1
    else
      seen.set(found.call, {
        ...found,
        file,
        confidence: 'certain',
        line: number,
        column: 1,
        text: `${method} ${target}`,
        count: 1,
      })
  }
  for await (const lines of linesOf(chunks)) for (const line of lines) scan(line)
  const findings = [...seen.values()]
  const isCertain = baseUrl !== undefined || findings.some((each) => !isGeneric(each))
  return findings.filter((each) => isCertain || !isGeneric(each))
}

/** A log without line ends is no log: its lines are cut. */
const maxLineLength = 2 ** 22

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > maxLineLength) rest = ''
    yield lines
  }
  yield [rest]
}

const prefixOf = (baseUrl: string): string =>
  URL.canParse(baseUrl) ? new URL(baseUrl).pathname.replace(/(?<!\/)\/+$/, '') : ''

function callOf(method: string, target: string, prefix: string): Found | undefined {
  const path = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/]*/, '')
  if (!path.startsWith(prefix)) return undefined
  return callTo(method === 'HEAD' ? 'GET' : method, path.slice(prefix.length))
}

type Request = readonly [method: string | undefined, target: string | undefined]

function requestIn(line: string): Request {
  if (line.startsWith('{')) {
    const [, method] = jsonMethod.exec(line) ?? []
    const [, target] = jsonPath.exec(line) ?? []
    if (method !== undefined && target !== undefined) return [method.toUpperCase(), target]
    const [, verb, place] = jsonRequestLine.exec(line) ?? []
    return [verb, place]
  }
  const match = requestForm.exec(line)
  return [match?.[1], match?.[2]]
}
