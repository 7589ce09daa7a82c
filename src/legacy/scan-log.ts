// Legacy calls in an access log: common or combined format, or a JSON object a line. Read once, as it comes; what is kept
// is one finding per call, with its first line and how often it is there, so that memory does not grow with the log.
import { callTo, type Found } from './find.ts'
import { type Finding, isGeneric, type ScanOptions } from './finding.ts'

/** Lines without any of these are not looked at. */
const candidate =
  /\/(?:resources\/|token|users|logs|health-check|version|default-base-image|validation-requirements|validate-license-key)/g
const requestForm = /(?:^|["\s])(GET|POST|PUT|DELETE|HEAD|PATCH) (\S+?)(?:["\s]|$)/
/** By form, not by parsing: it is four times as quick, and what is escaped is no call. */
const jsonMethod = /"(?:method|request_method|requestMethod|verb|http_method|http\.method)"\s*:\s*"([A-Za-z]+)"/
const jsonPath =
  /"(?:path|uri|url|request_uri|requestUri|request_path|target|http\.target|http\.path)"\s*:\s*"([^"\\]*)"/
const jsonRequestLine = /"request"\s*:\s*"([A-Z]+) ([^" ]+)/

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
  const seen = new Map<Found['call'], Seen>()
  let rest: Buffer[] = []
  let restBytes = 0
  let linesBefore = 0

  const scan = (text: string): void => {
    candidate.lastIndex = 0
    // Without an array for every match: most of the time would go into those.
    while (candidate.test(text)) {
      const at = startOf(text, candidate.lastIndex - 1, slash)
      const newline = text.indexOf('\n', at)
      const end = newline === -1 ? text.length : newline
      candidate.lastIndex = end
      const found = prefix === '' ? quickly(text, at, end) : undefined
      if (found) note(found, text, at)
      else if (found === undefined) {
        const [method, target] = requestIn(text.slice(startOf(text, at, lineFeed) + 1, end))
        const call = method === undefined || target === undefined ? undefined : callOf(method, target, prefix)
        if (call) note(call, text, at)
      }
    }
    linesBefore += countLines(text, text.length)
  }
  const note = (found: Found, text: string, at: number): void => {
    const known = seen.get(found.call)
    if (known) known.count += 1
    else {
      const start = startOf(text, at, lineFeed) + 1
      const line = Buffer.from(text.slice(start, start + 1_000).split('\n', 1)[0] ?? '', 'latin1').toString()
      seen.set(found.call, {
        found,
        line: linesBefore + countLines(text, start) + 1,
        text: requestIn(line).join(' '),
        count: 1,
      })
    }
  }

  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const end = bytes.lastIndexOf(lineFeed) + 1
    if (end === 0 && restBytes < maxLineLength) {
      rest.push(bytes)
      restBytes += bytes.length
    } else {
      // One byte, one character: positions hold, and nothing is looked at that is not ASCII.
      scan(Buffer.concat([...rest, bytes.subarray(0, end)]).toString('latin1'))
      rest = [bytes.subarray(end)]
      restBytes = bytes.length - end
    }
  }
  scan(Buffer.concat(rest).toString('latin1'))
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

/** `"GET /path HTTP/1.1"`, right here: nothing else of the line has to be looked at. null: it is none of ours. */
function quickly(text: string, at: number, lineEnd: number): Found | null | undefined {
  if (text.charCodeAt(at - 1) !== space) return undefined
  const end = text.indexOf(' ', at)
  // H of HTTP/1.1
  if (end === -1 || end > lineEnd || text.charCodeAt(end + 1) !== 0x48) return undefined
  const start = startOf(text, at, quote) + 1
  const method = at - start < 9 ? text.slice(start, at - 1) : ''
  return method === '' ? undefined : (callTo(method === 'HEAD' ? 'GET' : method, text, at, end) ?? null)
}
const space = 0x20
const slash = 0x2f
const quote = 0x22
const lineFeed = 0x0a

/** The last place before `at` that has this character; -1 without one. Quicker than lastIndexOf where it is near. */
function startOf(text: string, at: number, code: number): number {
  let place = at - 1
  while (place >= 0 && text.charCodeAt(place) !== code) place--
  return place
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

/** Another method than the path has was refused then, and is no call to migrate. */
function callOf(method: string, target: string, prefix: string): Found | undefined {
  const path = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/]*/, '')
  if (!path.startsWith(prefix)) return undefined
  return callTo(method === 'HEAD' ? 'GET' : method, prefix === '' ? path : path.slice(prefix.length))
}

type Request = readonly [method: string | undefined, target: string | undefined]

function requestIn(line: string): Request {
  if (line.charCodeAt(0) === brace) {
    const [, method] = jsonMethod.exec(line) ?? []
    const [, target] = jsonPath.exec(line) ?? []
    if (method !== undefined && target !== undefined) return [method.toUpperCase(), target]
    const [, verb, place] = jsonRequestLine.exec(line) ?? []
    return [verb, place]
  }
  const match = requestForm.exec(line)
  return [match?.[1], match?.[2]]
}
const brace = 0x7b
