// Turns any error into a Status: refusals stay as they are, errors of the framework and the store are translated by the
// tables below, and anything else is a 500 whose details are only in the log.
import type { FastifyError, FastifyReply } from 'fastify'
import { ApiError, badRequest, type Cause, enoughCauses, invalid, invalidField, type Reason } from '../../api/errors.ts'
import {
  ContentAwayError,
  ContentTooLargeError,
  ContentUnavailableError,
  NoContentError,
} from '../../images/content/content.ts'
import { type Log, type LogFields, logSparingly } from '../../platform/log.ts'
import { isOutOfSpace } from '../../store/faults.ts'
import { StoreError, type StoreFault } from '../../store/store.ts'

const frameworkFaults: Readonly<Record<string, readonly [Reason, string, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'RequestEntityTooLarge',
    'The request body is too large',
    'Send at most 1 MiB, or the limit that the operator set',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'BadRequest',
    'The request body does not match its Content-Length',
    'Send the request again',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UnsupportedMediaType',
    'The request body is not JSON',
    'Send Content-Type: application/json',
  ],
  FST_ERR_BAD_URL: ['BadRequest', 'The path is not a valid URL', 'Percent-encode special characters'],
  FST_ERR_MAX_PARAM_LENGTH: ['NotFound', 'Path not found: a name in it is too long', 'Check the path'],
}

const unavailableHint = 'Try again in a few seconds; the cause is in the server log and under /readyz'

const storeFaults: Readonly<Partial<Record<StoreFault, readonly [Reason, string, string]>>> = {
  Conflict: ['Conflict', 'The record changed in the meantime', 'Read the latest version, then try again'],
  AlreadyExists: ['AlreadyExists', 'A record with this name already exists', 'Choose another name'],
  NotFound: ['NotFound', 'Record not found: it was deleted in the meantime', 'List the records and try again'],
  TooLarge: ['RequestEntityTooLarge', 'The record is too large', 'Make it smaller'],
  Unavailable: ['ServiceUnavailable', 'The store is unavailable; nothing was changed', unavailableHint],
  Unknown: [
    'ServiceUnavailable',
    'The store stopped during this change, which may or may not have been saved',
    'Check the record before you try again',
  ],
}

const outOfSpace: readonly [Reason, string, string] = [
  'ServiceUnavailable',
  'The store is full; nothing was changed',
  'Ask the operator to free space: see /readyz',
]

type ContentFault = readonly [new (...args: never[]) => Error, Reason, (error: Error) => string, hint: string]
const contentFaults: readonly ContentFault[] = [
  [ContentUnavailableError, 'ServiceUnavailable', () => 'The image storage is unavailable', unavailableHint],
  [
    ContentAwayError,
    'ServiceUnavailable',
    (error) => `Some of its content is not ${(error as ContentAwayError).where}`,
    'Try again when that server is back',
  ],
  [NoContentError, 'Conflict', () => 'Some of its content is lost', 'Delete the image and upload it again'],
  [ContentTooLargeError, 'RequestEntityTooLarge', ({ message }) => message, 'Make it smaller'],
]

/** `more`: problems that the operation's own rules found in the same request. */
export function refusalOf(error: unknown, more: readonly Cause[] = []): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof StoreError) {
    if (error.fault === 'Damaged')
      return new ApiError('InternalError', error.message, { hint: 'Give this to the operator', cause: error })
    const row = isOutOfSpace(error) ? outOfSpace : storeFaults[error.fault]
    if (row)
      return new ApiError(row[0], row[1], {
        hint: row[2],
        cause: error,
        ...(row[0] === 'ServiceUnavailable' && { retryAfterSeconds: 2 }),
      })
  }
  for (const [Failure, reason, message, hint] of contentFaults) {
    if (!(error instanceof Failure)) continue
    const retry = reason === 'ServiceUnavailable' && { retryAfterSeconds: 5 }
    return new ApiError(reason, message(error), { hint, ...retry, cause: error })
  }
  const { code, validation, statusCode } = error as Partial<FastifyError>
  if (validation)
    return validationRefusal(validation, (error as { validationContext?: string }).validationContext ?? 'body', more)
  const row = code === undefined ? undefined : frameworkFaults[code]
  if (row) return new ApiError(row[0], row[1], { hint: row[2] })
  // The remaining 4xx of the framework are about the body. Its parser's message may repeat the body.
  if (statusCode === 400)
    return new ApiError('BadRequest', 'The request body is not valid JSON', { hint: 'Check its syntax' })
  return new ApiError('InternalError', 'Internal error', {
    hint: 'Look for the request ID in the server log',
    cause: error,
  })
}

export function refusalHeaders(refusal: ApiError, reply: FastifyReply): FastifyReply {
  const { retryAfterSeconds } = refusal.options
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (refusal.code === 401) reply.header('www-authenticate', 'Bearer realm="svc3"')
  return reply.header('x-request-id', reply.request.id)
}

/**
 * Logs our own faults as errors with their stack, and intended refusals of the server, such as an absent node, as
 * warnings.
 */
export function logFailure(log: Log, refusal: ApiError, fields: LogFields): void {
  const { code: status, reason, message } = refusal
  const { cause } = refusal.options
  // Lost content is not the caller's fault, although its status is below 500.
  if (status < 500 && !(cause instanceof NoContentError)) return
  const isMeant = cause === undefined && reason !== 'InternalError'
  if (isMeant) logSparingly(log, 'warn', 'a request failed', { ...fields, status, problem: message })
  else logSparingly(log, 'error', 'a request failed', { ...fields, status }, cause ?? refusal)
}

type Violation = NonNullable<FastifyError['validation']>[number]

/** A missing field or a wrong type is a bad request, a value out of bounds an invalid one (docs/spec.md R47). */
const unreadable = new Set(['type', 'required', 'enum', 'const', 'anyOf', 'oneOf'])

function validationRefusal(violations: readonly Violation[], part: string, more: readonly Cause[]): ApiError {
  const found = violations.slice(0, enoughCauses).map(causeOf)
  const named = new Set(found.map(({ field }) => field))
  const causes = [...found, ...more.filter(({ field }) => !named.has(field))]
  const isUnreadable = part !== 'body' || violations.some((violation) => unreadable.has(violation.keyword))
  const hint =
    part === 'body' ? 'Correct the fields in details.causes' : 'Correct the query parameters in details.causes'
  return isUnreadable ? badRequest(causes, hint) : invalid('', causes, hint)
}

/** The fields of a body that match the schema. */
export function soundFields(body: Record<string, unknown>, error: unknown): Record<string, unknown> {
  const violations = (error as Partial<FastifyError>).validation ?? []
  const faulty = new Set(violations.map(({ instancePath }) => instancePath.split('/', 2)[1]))
  return Object.fromEntries(Object.entries(body).filter(([name]) => !faulty.has(name)))
}

function causeOf({ instancePath, keyword, message, params }: Violation): Cause {
  const missing = keyword === 'required' ? String(params.missingProperty) : undefined
  const field = [...instancePath.split('/').slice(1), ...(missing ? [missing] : [])].join('.') || 'body'
  if (missing) return { field, reason: 'FieldValueRequired', message: `${field} is required` }
  const must = musts[keyword]?.(params) ?? message ?? 'is not valid'
  return invalidField(field, `${field} ${must}`)
}

const types: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
}
const characters = (count: unknown): string => (count === 1 ? '1 character' : `${count} characters`)

/** Keyword of a schema → what the value must be. */
const musts: Readonly<Record<string, (params: Violation['params']) => string>> = {
  enum: ({ allowedValues }) => `must be one of ${(allowedValues as readonly unknown[]).join(', ')}`,
  maxItems: ({ limit }) => `must have at most ${limit} entries`,
  maxLength: ({ limit }) => `must have at most ${characters(limit)}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  minItems: ({ limit }) => `must have at least ${limit} ${limit === 1 ? 'entry' : 'entries'}`,
  minLength: ({ limit }) => (limit === 1 ? 'must not be empty' : `must have at least ${characters(limit)}`),
  minimum: ({ limit }) => `must be at least ${limit}`,
  type: ({ type }) =>
    `must be ${[type]
      .flat()
      .map((name) => types[String(name)] ?? name)
      .join(' or ')}`,
}
