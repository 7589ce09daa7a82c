// Reads responses: the body up to a limit, and a refusal as an ApiError.
import { ApiError, type Cause, codes, type ErrorOptions, type Reason } from '../api/errors.ts'
import { isObject, type JsonObject, parseJson } from '../api/json.ts'
import { parseRetryAfter } from '../platform/retry.ts'

export const somethingElse = 'Check the address and any proxy: something other than svc3 answered'
export const maxAnswerBytes = 64 * 1024 * 1024

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Reasons for status codes of responses without a Status body, which come from proxies. */
const foreignReasons: Readonly<Record<number, Reason>> = {
  408: 'Timeout',
  409: 'Conflict',
  410: 'Gone',
  502: 'ServiceUnavailable',
}

function reasonByCode(status: number): Reason {
  const known = Object.entries(codes).find((entry) => entry[1] === status)
  const fallback = status >= 500 ? 'InternalError' : 'BadRequest'
  return foreignReasons[status] ?? (known?.[0] as Reason | undefined) ?? fallback
}

const isReason = (value: unknown): value is Reason => typeof value === 'string' && Object.hasOwn(codes, value)

/** Makes the error from svc3's Status body or, if another program answered, from the status code alone. */
export function errorFromAnswer(status: number, text: string, url: string, retryAfter: string | undefined): ApiError {
  const body = parseJson(text)
  const retryAfterMs = parseRetryAfter(retryAfter, Date.now())
  const retry = retryAfterMs === undefined ? {} : { retryAfterSeconds: retryAfterMs / 1_000 }
  const message = isObject(body) && body.kind === 'Status' ? textOf(body.message) : undefined
  if (!isObject(body) || message === undefined) return foreign(status, url, retry)
  const reason = isReason(body.reason) ? body.reason : reasonByCode(status)
  return new ApiError(reason, message, { ...optionsOf(body), ...retry }, textOf(body.requestId))
}

function foreign(status: number, url: string, retry: ErrorOptions): ApiError {
  const reason = reasonByCode(status)
  const words = reason === 'NotFound' ? 'not found' : reason
  return new ApiError(reason, `${url} answered ${status} (${words})`, {
    hint: somethingElse,
    foreignStatus: status,
    ...retry,
  })
}

function optionsOf(body: JsonObject): ErrorOptions {
  const details = isObject(body.details) ? body.details : {}
  const name = textOf(details.name)
  const kind = textOf(details.kind)
  const hint = textOf(body.hint)
  const causes = Array.isArray(details.causes) ? details.causes.filter(isCause) : []
  return { ...(name && { name }), ...(kind && { kind }), ...(hint && { hint }), ...(causes.length > 0 && { causes }) }
}

const isCause = (value: unknown): value is Cause =>
  isObject(value) && ['field', 'reason', 'message'].every((key) => typeof value[key] === 'string')
