// Every refusal that crosses the wire: a Kubernetes `Status` object, and the one error class that becomes it.
import * as t from 'typebox'

/** Reason → HTTP code. The reason is what programs read, the message and the hint are what people read. */
export const codes = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  Gone: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  RangeNotSatisfiable: 416,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const
export type Reason = keyof typeof codes

export const Cause = t.Object({ field: t.String(), reason: t.String(), message: t.String() })
export type Cause = t.Static<typeof Cause>

export const Status = t.Object(
  {
    kind: t.Literal('Status'),
    apiVersion: t.Literal('v1'),
    metadata: t.Object({}),
    status: t.String({ enum: ['Success', 'Failure'] }),
    message: t.String({ description: 'What happened, and to what' }),
    reason: t.Optional(t.String({ description: 'One word for programs' })),
    details: t.Optional(
      t.Object({
        name: t.Optional(t.String()),
        kind: t.Optional(t.String()),
        causes: t.Optional(t.Array(Cause, { description: 'Every faulty field, not only the first' })),
      }),
    ),
    code: t.Integer(),
    hint: t.Optional(t.String({ description: 'What to do next' })),
    requestId: t.Optional(t.String({ description: 'Names this request in the log of the service' })),
  },
  { title: 'Status', description: 'The outcome of a request that has no record to show' },
)
export type Status = t.Static<typeof Status>

export interface ErrorOptions {
  readonly kind?: string
  readonly name?: string
  readonly causes?: readonly Cause[]
  readonly hint?: string
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** The only error that a handler, a rule or the client throws on purpose. Anything else is a fault of ours: a 500. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly reason: Reason
  readonly code: number
  readonly options: ErrorOptions
  /** Set by the client from an answer: the service's own name for the request. */
  readonly requestId: string | undefined

  constructor(reason: Reason, message: string, options: ErrorOptions = {}, requestId?: string) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.reason = reason
    this.code = codes[reason]
    this.options = options
    this.requestId = requestId
  }

  /** Another try may work without anybody doing anything: the service is busy, or not there for a moment. */
  get isTransient(): boolean {
    return this.reason === 'TooManyRequests' || this.reason === 'ServiceUnavailable'
  }

  get retryAfterMs(): number | undefined {
    const { retryAfterSeconds } = this.options
    return retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000
  }

  toStatus(requestId: string): Status {
    const { kind, name, causes, hint } = this.options
    const details = { ...(name && { name }), ...(kind && { kind }), ...(causes && { causes: [...causes] }) }
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(Object.keys(details).length > 0 && { details }),
      code: this.code,
      ...(hint && { hint }),
      requestId,
    }
  }
}

export function success(message: string, options: { kind: string; name: string }): Status {
  const { kind, name } = options
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    message,
    details: { name, kind },
    code: 200,
  }
}

export const notFound = (kind: string, name: string, hint: string): ApiError =>
  new ApiError('NotFound', `${kind} "${name}" not found`, { kind, name, hint })

/** One or more values that can never be right. */
export const invalid = (kind: string, causes: readonly Cause[], hint?: string): ApiError =>
  new ApiError('Invalid', causes.map((cause) => cause.message).join('; '), { kind, causes, ...(hint && { hint }) })

/** A request that cannot be read: not JSON, a wrong type, a missing field. */
export const badRequest = (causes: readonly Cause[], hint?: string): ApiError =>
  new ApiError('BadRequest', causes.map((cause) => cause.message).join('; '), { causes, ...(hint && { hint }) })
