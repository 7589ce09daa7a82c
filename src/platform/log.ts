// The log: JSON lines on standard error, or short lines on a terminal. Only listed fields can be logged, so that
// secrets in an object cannot leak.
import tty from 'node:tty'
import pino from 'pino'

/** Values are scalars. Long texts are cut. */
const allowedFields = [
  'requestId', 'actor', 'operation', 'method', 'route', 'status', 'durationMs', 'remote',
  'reason', 'problem', 'stack', 'code', 'kind', 'name', 'namespace', 'revision', 'address', 'version', 'node', 'count',
  'keyId', 'signal', 'pid', 'folder', 'attempt', 'delayMs', 'omitted',
] as const // biome-ignore format: a list to read
export type LogFields = { readonly [Field in (typeof allowedFields)[number]]?: string | number | boolean | undefined }

export type Level = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  /** Logs the message and the stack of `error`, which contain no request data, and none of its other fields. */
  error(message: string, fields?: LogFields, error?: unknown): void
}

const maxTextLength = 4_000

/** In a thread, process.stderr has no isTTY. */
const isTerminal = tty.isatty(2)
let unwritten = ''
/** Too short to notice, and long enough to save writes on a busy server. */
const gatherMs = 5
/** Gathers lines into one write. Lines are also written at the exit of the process. */
function toStandardError(line: string): void {
  if (isTerminal) return void process.stderr.write(readableLine(line))
  if (unwritten === '') setTimeout(flush, gatherMs)
  unwritten += line
}
function flush(): void {
  const lines = unwritten
  unwritten = ''
  if (lines !== '') process.stderr.write(lines)
}
process.on('exit', flush)

export function createLog(level: Level, write: (line: string) => void = toStandardError): Log {
  const sink = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      messageKey: 'message',
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  )
  return {
    debug: (message, fields) => sink.isLevelEnabled('debug') && sink.debug(allowed(fields), message),
    info: (message, fields) => sink.isLevelEnabled('info') && sink.info(allowed(fields), message),
    warn: (message, fields) => sink.isLevelEnabled('warn') && sink.warn(allowed(fields), message),
    error: (message, fields, error) => sink.error({ ...allowed(fields), ...describe(error) }, message),
  }
}

/** Lines that callers can cause are of one kind if they agree in these fields, none of which has a caller's own text. */
const kindFields = ['actor', 'method', 'route', 'status', 'reason', 'code'] as const
const quietMs = 10_000
/** Within ten seconds, further kinds of a level count as one. */
const maxKinds = 500
interface Kind {
  readonly untilMs: number
  omitted: number
}
/** The kinds of each log, in the order of their times. */
const kindsOf = new WeakMap<Log, Map<string, Kind>>()

/**
 * For lines that callers can cause as often as they like: logs the first of a kind, and then none for ten seconds. The
 * next one says how many were omitted.
 */
export function logSparingly(
  log: Log,
  level: 'warn' | 'error',
  message: string,
  fields: LogFields,
  error?: unknown,
  nowMs = performance.now(),
): void {
  const kinds = kindsOf.get(log) ?? new Map<string, Kind>()
  kindsOf.set(log, kinds)
  const place = error instanceof Error ? error.stack?.split('\n').find((line) => line.startsWith('    at ')) : ''
  const errorName = error instanceof Error ? error.name : ''
  const kind = [message, errorName, place, ...kindFields.map((name) => fields[name])].join('\0')
  for (const [oldest, { untilMs }] of kinds) {
    if (kinds.size < maxKinds || nowMs < untilMs) break
    kinds.delete(oldest)
  }
  const key = kinds.has(kind) || kinds.size < maxKinds ? kind : level
  const last = kinds.get(key)
  if (last && nowMs < last.untilMs) {
    last.omitted += 1
    return
  }
  kinds.delete(key)
  kinds.set(key, { untilMs: nowMs + quietMs, omitted: 0 })
  log[level](message, last?.omitted ? { ...fields, omitted: last.omitted } : fields, error)
}

type Line = LogFields & { readonly level: Level; readonly time: string; readonly message: string }

/** `12:03:44 POST /api/v1/namespaces/svc-default/vms 201 812 ms`, `12:03:44 warn  lease lost node=mac-1`. */
export function readableLine(json: string): string {
  const { level, time, message, stack, ...fields } = JSON.parse(json) as Line
  const { method, route = '', namespace = '', status, durationMs, omitted } = fields
  const isRequest = message === 'request' && method !== undefined
  const subject = isRequest
    ? `${method} ${String(route).replace(':namespace', String(namespace))} ${status} ${durationMs} ms${omitted === undefined ? '' : `, and ${omitted} like it before`}`
    : message
  const details = isRequest ? [] : Object.entries(fields).map(([name, value]) => ` ${name}=${quoted(String(value))}`)
  const label = level === 'info' || isRequest ? '' : `${level.padEnd(5)} `
  const first = `${new Date(time).toTimeString().slice(0, 8)} ${label}${subject}${details.join('')}`
  const below = stack === undefined ? [] : String(stack).split('\n')
  return [first, ...below.map((line) => `  ${line}`)].map((line) => `${line.replaceAll(unseen, '?')}\n`).join('')
}

const quoted = (text: string): string => (/^[^\s"]+$/.test(text) ? text : JSON.stringify(text))

/** Characters that could manipulate the terminal. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

export const silentLog: Log = createLog('silent')

function allowed(fields: LogFields | undefined): LogFields {
  const result: Record<string, string | number | boolean> = {}
  if (!fields) return result
  for (const name of allowedFields) {
    const value = fields[name]
    if (typeof value === 'string') result[name] = value.slice(0, maxTextLength)
    else if (typeof value === 'number' || typeof value === 'boolean') result[name] = value
  }
  return result
}

const describe = (error: unknown): LogFields =>
  error instanceof Error
    ? allowed({ problem: error.message, stack: error.stack })
    : error === undefined
      ? {}
      : { problem: typeof error }
