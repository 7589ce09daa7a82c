// Turns an error into lines on stderr and an exit code. Loaded only when something failed.
import { ApiError, type Reason } from '../api/errors.ts'
import { ConnectionError } from '../client/transport.ts'
import { asCalled } from './called-as.ts'
import { hintHere, isAboutMissing, messageOf } from './causes.ts'
import type { CommandTable } from './command.ts'
import { findConnection, type ServerConnection, serverOf } from './connect/connection.ts'
import { withoutSecrets } from './connect/redact.ts'
import type { Host } from './host.ts'
import { exitCodes, isCommandError } from './line/usage.ts'
import { visible } from './output/output.ts'

const byReason: Readonly<Partial<Record<Reason, number>>> = {
  Unauthorized: exitCodes.notAuthenticated,
  Forbidden: exitCodes.forbidden,
  NotFound: exitCodes.notFound,
  AlreadyExists: exitCodes.conflict,
  Conflict: exitCodes.conflict,
  Timeout: exitCodes.timedOut,
}

/** Scripts look for these words in the text, whatever else it says. */
const promisedWords: Readonly<Partial<Record<Reason, string>>> = { Unauthorized: 'Unauthorized', NotFound: 'not found' }

interface Told {
  readonly exitCode: number
  readonly what: string
  readonly next?: string | undefined
}

interface FailureContext {
  readonly host: Host
  readonly commands: CommandTable
  /** How to ask for the help of the command that failed. */
  readonly helpLine: string
  /** The long names of its options, for refusals that speak of fields. */
  readonly options?: readonly string[] | undefined
  readonly secrets: ReadonlySet<string>
  readonly interrupted: boolean
}

/** Prints the failure and returns the exit code. Never a stack, unless --debug (or SVC3_DEBUG) asks for one. */
export function reportFailure(error: unknown, context: FailureContext): number {
  const { host, secrets } = context
  const { exitCode, what, next } = context.interrupted ? interruption(error) : tell(error, context)
  for (const said of [what, next]) {
    if (!said) continue
    const text = asCalled(said, host, context.commands)
    host.stderr.write(`${host.calledAs}: ${withoutSecrets(visible(text), secrets)}\n`)
  }
  if (host.env.SVC3_DEBUG && error instanceof Error) host.stderr.write(`${withoutSecrets(stackOf(error), secrets)}\n`)
  return exitCode
}

function interruption(error: unknown): Told {
  const own = isCommandError(error) && error.exitCode === exitCodes.interrupted ? error : undefined
  return { exitCode: exitCodes.interrupted, what: own?.message ?? 'Interrupted', next: own?.hint }
}

function tell(error: unknown, context: FailureContext): Told {
  const { helpLine } = context
  if (isCommandError(error))
    return error.exitCode === exitCodes.interrupted
      ? interruption(error)
      : { exitCode: error.exitCode, what: error.message, next: error.hint ?? helpLine }
  if (error instanceof ApiError) return tellRefusal(error, context)
  if (error instanceof ConnectionError) {
    const exitCode = error.fault === 'timeout' ? exitCodes.timedOut : exitCodes.failed
    return { exitCode, what: error.message, next: error.hint }
  }
  const what = error instanceof Error ? error.message : String(error)
  return { exitCode: exitCodes.failed, what: what || 'Failed', next: 'Add --debug to see where this comes from' }
}

function tellRefusal(error: ApiError, { host, options = [], helpLine }: FailureContext): Told {
  const word = promisedWords[error.reason]
  const said = messageOf(error, options)
  const place = personal.has(error.reason) ? connectionOf(host) : undefined
  const promised = word && !said.includes(word) ? `${said} (${word})` : said
  // Only what the service said: it has named the request.
  const message = place && error.requestId !== undefined ? `${promised} (${serverOf(place)})` : promised
  const request = error.code >= 500 && error.requestId ? ` (request ${error.requestId})` : ''
  const exitCode = isAboutMissing(error) ? exitCodes.notFound : (byReason[error.reason] ?? exitCodes.failed)
  return { exitCode, what: message + request, next: hintHere(hintOf(error, place), helpLine) }
}

/** Whether they are right depends on who asks, and where: a wrong cluster is a frequent cause. */
const personal: ReadonlySet<Reason> = new Set(['Unauthorized', 'Forbidden'])

function connectionOf(host: Host): ServerConnection | undefined {
  try {
    return findConnection(host)
  } catch {
    return undefined
  }
}

const hints: Readonly<Partial<Record<Reason, string>>> = {
  Forbidden: 'Ask an administrator for access, or use another account',
  Conflict: 'Check the current state, then try again',
  TooManyRequests: 'Wait a moment, then try again',
  InternalError: 'Check the log of the service',
  ServiceUnavailable: 'Try again in a moment',
  Timeout: 'Try again; the service may be busy',
}
/** How to give a token differs between HTTP and here; every other hint of the service is good here too. */
const hintOf = (error: ApiError, place: ServerConnection | undefined): string | undefined =>
  error.reason === 'Unauthorized' ? loginHint(place) : (error.options.hint ?? hints[error.reason])

const loginHint = (place: ServerConnection | undefined): string => {
  const context = place?.context === undefined ? '' : ` --context ${place.context}`
  return `Run svc3 login${context}, or set SVC3_TOKEN to a valid token`
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : ''
  return `${error.stack ?? error.message}${cause}`
}
