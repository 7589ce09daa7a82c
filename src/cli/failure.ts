// Turns an error into lines on stderr and an exit code.
import { ApiError, type Reason } from '../api/errors.ts'
import { ConnectionError } from '../client/transport.ts'
import { asTyped } from './called-as.ts'
import { isAboutMissing, messageWithOptions } from './causes.ts'
import { findConnection, type ServerConnection, serverOf } from './connect/connection.ts'
import { withoutSecrets } from './connect/redact.ts'
import type { Host } from './host.ts'
import { exitCodes, isCommandError } from './line/usage.ts'
import { visible } from './output/output.ts'

/** What the service refuses as invalid ends like what the command line refuses itself, so that scripts see one rule. */
const byReason: Readonly<Partial<Record<Reason, number>>> = {
  BadRequest: exitCodes.usage,
  Invalid: exitCodes.usage,
  Unauthorized: exitCodes.notAuthenticated,
  Forbidden: exitCodes.forbidden,
  NotFound: exitCodes.notFound,
  AlreadyExists: exitCodes.conflict,
  Conflict: exitCodes.conflict,
  Timeout: exitCodes.timedOut,
}

/** Scripts look for these words in the message. */
const promisedWords: Readonly<Partial<Record<Reason, string>>> = { Unauthorized: 'Unauthorized', NotFound: 'not found' }

interface Report {
  readonly exitCode: number
  readonly message: string
  readonly hint?: string | undefined
}

interface FailureContext {
  readonly host: Host
  /** Printed when the error has no hint: how to get help on the command. */
  readonly helpLine: string
  /** The long names of the command's options. */
  readonly options?: readonly string[] | undefined
  readonly secrets: ReadonlySet<string>
  readonly interrupted: boolean
}

/** Prints the failure and returns the exit code. Prints a stack only with --debug or SVC3_DEBUG. */
export function reportFailure(error: unknown, context: FailureContext): number {
  const { host, secrets } = context
  const { exitCode, message, hint } = context.interrupted ? interruption(error) : reportOf(error, context)
  for (const text of [message, hint])
    if (text) host.stderr.write(`${host.calledAs}: ${withoutSecrets(visible(asTyped(text, host)), secrets)}\n`)
  if (host.env.SVC3_DEBUG && error instanceof Error) host.stderr.write(`${withoutSecrets(stackOf(error), secrets)}\n`)
  return exitCode
}

function interruption(error: unknown): Report {
  const commandError = isCommandError(error) && error.exitCode === exitCodes.interrupted ? error : undefined
  return { exitCode: exitCodes.interrupted, message: commandError?.message ?? 'Interrupted', hint: commandError?.hint }
}

function reportOf(error: unknown, context: FailureContext): Report {
  if (isCommandError(error))
    return error.exitCode === exitCodes.interrupted
      ? interruption(error)
      : { exitCode: error.exitCode, message: error.message, hint: error.hint ?? context.helpLine }
  if (error instanceof ApiError) return refusalReport(error, context)
  if (error instanceof ConnectionError) {
    const exitCode = error.fault === 'timeout' ? exitCodes.timedOut : exitCodes.failed
    return { exitCode, message: error.message, hint: error.hint }
  }
  const message = (error instanceof Error ? error.message : String(error)) || 'Failed'
  return { exitCode: exitCodes.failed, message, hint: 'Add --debug to see where this comes from' }
}

function refusalReport(error: ApiError, { host, options = [], helpLine }: FailureContext): Report {
  const word = promisedWords[error.reason]
  const text = messageWithOptions(error, options)
  const connection = dependsOnServer.has(error.reason) ? connectionOf(host) : undefined
  const promised = word && !text.includes(word) ? `${text} (${word})` : text
  // Only errors of the service have a request ID.
  const message = connection && error.requestId !== undefined ? `${promised} (${serverOf(connection)})` : promised
  const request = error.code >= 500 && error.requestId ? ` (request ${error.requestId})` : ''
  const exitCode = isAboutMissing(error) ? exitCodes.notFound : (byReason[error.reason] ?? exitCodes.failed)
  const hint = hintOf(error, connection)
  // Callers of the command line see options, not the fields of a request.
  return { exitCode, message: message + request, hint: hint?.includes('details.causes') ? helpLine : hint }
}

/** These depend on the server and the user, so the message names the server: a wrong one is a frequent cause. */
const dependsOnServer: ReadonlySet<Reason> = new Set(['Unauthorized', 'Forbidden'])

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
/** Replaces the service's hint about tokens, which is for HTTP requests and not for the command line. */
const hintOf = (error: ApiError, connection: ServerConnection | undefined): string | undefined =>
  error.reason === 'Unauthorized' ? loginHint(connection) : (error.options.hint ?? hints[error.reason])

const loginHint = (connection: ServerConnection | undefined): string => {
  const context = connection?.context === undefined ? '' : ` --context ${connection.context}`
  return `Run svc3 login${context}, or set SVC3_TOKEN to a valid token`
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : ''
  return `${error.stack ?? error.message}${cause}`
}
