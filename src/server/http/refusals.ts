// Turns whatever is thrown into a Status: refusals as they are, errors of the framework and the store by the tables
// below, anything else a 500 with the details in the log and only the request id in the answer.
import type { FastifyError } from 'fastify'
import { ApiError, badRequest, type Cause, invalid, type Reason } from '../../api/errors.ts'
import {
  ContentAwayError,
  ContentTooLargeError,
  ContentUnavailableError,
  NoContentError,
} from '../../images/content/content.ts'
import { isOutOfSpace } from '../../store/faults.ts'
import { StoreError, type StoreFault } from '../../store/store.ts'

const frameworkFaults: Readonly<Record<string, readonly [Reason, string, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'RequestEntityTooLarge',
    'the request body is too large',
    'send less: 1 MiB is the limit unless the operator set another',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'BadRequest',
    'the request body is not as long as Content-Length says',
    'send it again',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UnsupportedMediaType',
    'the request body is not JSON',
    'send Content-Type: application/json',
  ],
  FST_ERR_BAD_URL: ['BadRequest', 'the path cannot be decoded', 'encode it as a URL'],
  FST_ERR_MAX_PARAM_LENGTH: [
    'NotFound',
    'not found: a name in the path is too long for anything there is',
    'check the path',
  ],
}

const storeFaults: Readonly<Partial<Record<StoreFault, readonly [Reason, string, string]>>> = {
  Conflict: ['Conflict', 'the record changed at the same time', 'read it again and repeat'],
  AlreadyExists: ['AlreadyExists', 'a record of that name exists already', 'choose another name'],
  NotFound: ['NotFound', 'the record was not found any more', 'list what is there'],
  TooLarge: ['RequestEntityTooLarge', 'the record is too large to be stored', 'make it smaller'],
  Unavailable: [
    'ServiceUnavailable',
    'the store does not take changes at the moment; nothing was changed',
    'repeat in a few seconds; if it lasts, the operator finds the cause in the log and under /readyz',
  ],
  Unknown: [
    'ServiceUnavailable',
    'the store stopped while it made this change, which may or may not be there',
    'look what is there before repeating',
  ],
}

const outOfSpace: readonly [Reason, string, string] = [
  'ServiceUnavailable',
  'the store has no space left for changes; nothing was changed',
  'reading works; the operator finds the way out under /readyz and in docs/operating.md',
]

/** `more`: what the noun's own rules find wrong with the same request. */
export function refusalOf(error: unknown, more: readonly Cause[] = []): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof StoreError) {
    const row = isOutOfSpace(error) ? outOfSpace : storeFaults[error.fault]
    if (row)
      return new ApiError(row[0], row[1], {
        hint: row[2],
        cause: error,
        ...(row[0] === 'ServiceUnavailable' && { retryAfterSeconds: 2 }),
      })
  }
  if (error instanceof ContentUnavailableError)
    return new ApiError('ServiceUnavailable', 'the images of this service cannot be reached at the moment', {
      hint: 'repeat in a few seconds; if it lasts, the operator finds the cause in the log and under /readyz',
      retryAfterSeconds: 5,
      cause: error,
    })
  if (error instanceof ContentAwayError)
    return new ApiError('ServiceUnavailable', `some of it is not ${error.where}`, {
      hint: 'repeat it when that server is back',
      retryAfterSeconds: 5,
      cause: error,
    })
  if (error instanceof NoContentError)
    return new ApiError('Conflict', 'some of it is lost: its content is nowhere any more', {
      hint: 'delete it and upload it again',
      cause: error,
    })
  if (error instanceof ContentTooLargeError)
    return new ApiError('RequestEntityTooLarge', error.message, { hint: 'make it smaller', cause: error })
  const { code, validation, statusCode } = error as Partial<FastifyError>
  if (validation)
    return validationRefusal(validation, (error as { validationContext?: string }).validationContext ?? 'body', more)
  const row = code === undefined ? undefined : frameworkFaults[code]
  if (row) return new ApiError(row[0], row[1], { hint: row[2] })
  // What is left of the framework's 4xx is about the body's text: a parser's message, with the place but not the text.
  if (statusCode === 400)
    return new ApiError('BadRequest', 'the request body is not valid JSON', { hint: 'check it with a JSON tool' })
  return new ApiError('InternalError', 'something went wrong in the service', {
    hint: 'the request id leads to the cause in its log',
    cause: error,
  })
}

type Violation = NonNullable<FastifyError['validation']>[number]

/** A missing field or a wrong type makes it a bad request; a value out of bounds, an invalid one (docs/spec.md R47). */
const unreadable = new Set(['type', 'required', 'enum', 'const', 'anyOf', 'oneOf'])

function validationRefusal(violations: readonly Violation[], part: string, more: readonly Cause[]): ApiError {
  const found = violations.map(causeOf)
  const named = new Set(found.map(({ field }) => field))
  const causes = [...found, ...more.filter(({ field }) => !named.has(field))]
  const isUnreadable = part !== 'body' || violations.some((violation) => unreadable.has(violation.keyword))
  const hint =
    part === 'body'
      ? 'correct the fields named in details.causes'
      : 'correct the query parameters named in details.causes'
  return isUnreadable ? badRequest(causes, hint) : invalid('', causes, hint)
}

/** The fields of a body that the schema has nothing against. */
export function soundFields(body: Record<string, unknown>, error: unknown): Record<string, unknown> {
  const violations = (error as Partial<FastifyError>).validation ?? []
  const faulty = new Set(violations.map(({ instancePath }) => instancePath.split('/')[1]))
  return Object.fromEntries(Object.entries(body).filter(([name]) => !faulty.has(name)))
}

function causeOf({ instancePath, keyword, message, params }: Violation): Cause {
  const missing = keyword === 'required' ? String(params.missingProperty) : undefined
  const field = [...instancePath.split('/').slice(1), ...(missing ? [missing] : [])].join('.') || 'body'
  if (missing) return { field, reason: 'FieldValueRequired', message: `${field} is missing` }
  return { field, reason: 'FieldValueInvalid', message: `${field} ${message ?? 'is not valid'}` }
}
