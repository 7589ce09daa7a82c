// Finds legacy calls in access logs: common or combined format, or a JSON object per line. Reports each call once, with its
// first line and the number of requests, so that memory does not grow with the log.
import { callTo, type MappedCall } from '../find.ts'
import type { Finding, ScanOptions } from './finding.ts'

/** Other lines are skipped without parsing. */
const legacyPath =
  /\/(?:resources\/|token|users|logs|health-check|version|default-base-image|validation-requirements|validate-license-key)/
const requestForm = /(?:^|["\s])(GET|POST|PUT|DELETE|HEAD|PATCH) (\S+?)(?:["\s]|$)/
/** These forms are four times as fast as JSON.parse. They do not match values with escapes. */
const jsonMethod = /"(?:method|request_method|requestMethod|verb|http_method|http\.method)"\s*:\s*"([A-Za-z]+)"/
const jsonPath =
  /"(?:path|uri|url|request_uri|requestUri|request_path|target|http\.target|http\.path)"\s*:\s*"([^"\\]*)"/
const jsonRequestLine = /"request"\s*:\s*"([A-Z]+) ([^" ]+)/

/** Reports whether other services have the path too, so that the call needs evidence. */
const isGeneric = ({ call: { path } }: MappedCall): boolean =>
  /^\/(?:token|users|logs|version|health-check)\b/.test(path)

export async function logFindings(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  { baseUrl }: ScanOptions = {},
): Promise<Finding[]> {
  const prefix = baseUrl === undefined ? '' : prefixOf(baseUrl)
  const seen = new Map<MappedCall['call'], Finding & { count: number }>()
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

/** Longer lines are dropped, so that a file without line ends does not fill the memory. */
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

function callOf(method: string, target: string, prefix: string): MappedCall | undefined {
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
