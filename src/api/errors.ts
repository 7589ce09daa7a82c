// Errors of the API: a Kubernetes `Status` object, and the one error class that becomes it.
import * as t from 'typebox'
import { nounOfWire } from './nouns.ts'

/** HTTP codes by reason. Programs read the reason; people read the message and the hint. */
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
    message: t.String({ description: 'What happened, for people' }),
    reason: t.Optional(t.String({ description: 'Reason in one word, for programs' })),
    details: t.Optional(
      t.Object({
        name: t.Optional(t.String()),
        kind: t.Optional(t.String()),
        causes: t.Optional(t.Array(Cause, { description: 'The invalid fields, at most 20 of them' })),
      }),
    ),
    code: t.Integer(),
    hint: t.Optional(t.String({ description: 'What to do next' })),
    requestId: t.Optional(t.String({ description: 'ID of the request in the server log' })),
  },
  { title: 'Status', description: 'Result of a request without a record' },
)
export type Status = t.Static<typeof Status>

export interface ErrorOptions {
  readonly kind?: string
  readonly name?: string
  readonly causes?: readonly Cause[]
  readonly hint?: string
  /** For administrators, in place of `hint`. */
  readonly adminHint?: string
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
  /** Set by the client if the response came from another program, such as a proxy. */
  readonly foreignStatus?: number
}

/** The only error that handlers, rules and the client throw on purpose. Any other error is a bug and becomes a 500. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly reason: Reason
  readonly code: number
  readonly options: ErrorOptions
  /** Set by the client from the response: the ID of the request in the server's log. */
  readonly requestId: string | undefined

  constructor(reason: Reason, message: string, options: ErrorOptions = {}, requestId?: string) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.reason = reason
    this.code = codes[reason]
    this.options = options
    this.requestId = requestId
  }

  /** The same as `code`, under the name that users of the npm client know. */
  get status(): number {
    return this.code
  }

  get hint(): string | undefined {
    return this.options.hint
  }

  get causes(): readonly Cause[] {
    return this.options.causes ?? []
  }

  /** Whether a retry may succeed without intervention, because the service is busy or briefly unavailable. */
  get isTransient(): boolean {
    return this.reason === 'TooManyRequests' || this.reason === 'ServiceUnavailable'
  }

  get retryAfterMs(): number | undefined {
    const { retryAfterSeconds } = this.options
    return retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000
  }

  toStatus(requestId: string, isAdmin = false): Status {
    const { kind, name, causes, adminHint } = this.options
    const hint = (isAdmin ? adminHint : undefined) ?? this.hint
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

/** One name or a comma-separated list unchanged, and text that cannot be a name in quotes. */
const nameText = (name: string): string => {
  const short = name.slice(0, 200)
  return /^[\p{L}\p{N}@._:/+-]+(, [\p{L}\p{N}@._:/+-]+)*$/u.test(short) ? short : JSON.stringify(short)
}

/** How a message names a record: `VM demo`, `Image tools`. */
export const recordName = (kind: string, name: string): string => `${nounOfWire(kind)?.word ?? kind} ${nameText(name)}`

interface RecordScope {
  /** Absent for records of the whole cluster. */
  readonly namespace?: string | undefined
  /** Default: run the command that lists the kind. */
  readonly hint?: string
}

const inside = (namespace: string | undefined): string => (namespace ? ` in ${namespace}` : '')

function listHint(kind: string, namespace: string | undefined): string | undefined {
  const { word = '', command } = nounOfWire(kind) ?? {}
  const option = namespace ? ` -n ${namespace}` : ''
  const plural = `${/^[A-Z]{2}/.test(word) ? word : word.toLowerCase()}s`
  return command && `Run svc3 ${command}${option} to see all ${plural}`
}

export function notFound(kind: string, name: string, { namespace, hint }: RecordScope = {}): ApiError {
  const next = hint ?? listHint(kind, namespace)
  const about = { kind, name: name.slice(0, 200), ...(next && { hint: next }) }
  return new ApiError('NotFound', `${recordName(kind, name)} not found${inside(namespace)}`, about)
}

export const alreadyExists = (
  kind: string,
  name: string,
  { namespace, hint = 'Choose another name' }: RecordScope = {},
): ApiError =>
  new ApiError('AlreadyExists', `${recordName(kind, name)} already exists${inside(namespace)}`, { kind, name, hint })

/** The state of a record does not allow the request. `what` continues the sentence that its name begins. */
export const conflict = (kind: string, name: string, what: string, hint: string): ApiError =>
  new ApiError('Conflict', `${recordName(kind, name)} ${what}`, { kind, name, hint })

/** The cause for a field whose value is never valid. */
export const invalidField = (field: string, message: string): Cause => ({ field, reason: 'FieldValueInvalid', message })

/** In a list of causes: the cause if the field is invalid, otherwise nothing. */
export const invalidIf = (isInvalid: boolean, field: string, message: string): Cause[] =>
  isInvalid ? [invalidField(field, message)] : []

/** The error (422) for one or more values that are never valid. */
export const invalid = (kind: string, causes: readonly Cause[], hint?: string): ApiError =>
  new ApiError('Invalid', messagesOf(causes), { kind, causes: causes.slice(0, maxCauses), ...(hint && { hint }) })

/** The error (400) for a request that cannot be parsed: no JSON, a wrong type or a missing field. */
export const badRequest = (causes: readonly Cause[], hint?: string): ApiError =>
  new ApiError('BadRequest', messagesOf(causes), { causes: causes.slice(0, maxCauses), ...(hint && { hint }) })

/** Bounds the size of the response, because a body may have thousands of wrong fields. */
const maxCauses = 20
/** Refusals need no more causes than this, however many a request has. */
export const enoughCauses = 100

function messagesOf(causes: readonly Cause[]): string {
  const messages = causes.slice(0, maxCauses).map(({ message }) => message)
  const more = causes.length - messages.length
  const count = causes.length < enoughCauses ? more : 'many'
  return [...messages, ...(more > 0 ? [`and ${count} more`] : [])].join('; ')
}
