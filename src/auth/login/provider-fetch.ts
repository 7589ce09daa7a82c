// Requests to an identity provider, for JSON of limited length and without redirects.
import { ApiError } from '../../api/errors.ts'
import { createHttpClient, type HttpRequest, readAll } from '../../platform/http.ts'

/** The provider does not respond, or sends invalid data. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
}

/** The provider responded with another status than 200. */
export class ProviderAnswered extends Error {
  override readonly name = 'ProviderAnswered'
  readonly status: number

  constructor(url: string, status: number) {
    super(`${url} answered ${status}`)
    this.status = status
  }
}

const timeoutMs = 5_000
const maxBytes = 1_048_576
const client = createHttpClient({ idleMs: timeoutMs, maxSockets: 4 })

/** Fails on a redirect, which could send credentials to another host. */
export async function sendToProvider(
  url: string,
  request: Pick<HttpRequest, 'method' | 'headers' | 'authorization' | 'body'>,
  limitMs = timeoutMs,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const signal = AbortSignal.timeout(limitMs)
  const headers = { accept: 'application/json', ...request.headers }
  const response = await client.send({ ...request, url: new URL(url), headers, signal, maxRedirects: 0 })
  return { status: response.status, body: parsed((await readAll(response, maxBytes)).toString()) }
}

export async function fetchJson(url: string, authorization?: string): Promise<Record<string, unknown>> {
  const { status, body } = await sendToProvider(url, { method: 'GET', authorization })
  if (status !== 200) throw new ProviderAnswered(url, status)
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new Error(`the answer of ${url} is not a JSON object`)
  return body as Record<string, unknown>
}

/** Returns undefined for invalid JSON, because the parser's message would quote the response. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads the discovery document. Throws if it is that of another issuer. */
export async function discover(issuer: string): Promise<Record<string, unknown>> {
  const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (document.issuer === issuer) return document
  throw new Error(`its issuer is ${JSON.stringify(document.issuer)}, not ${issuer}`)
}

/** A URL of the discovery document; undefined if it is less secure than that of the issuer. */
export function endpointIn(document: Record<string, unknown>, field: string, issuer: string): string | undefined {
  const text = document[field]
  const url = typeof text === 'string' ? URL.parse(text) : null
  return url && (url.protocol === 'https:' || url.protocol === new URL(issuer).protocol) ? url.href : undefined
}

export function unavailable(error: unknown): ProviderUnavailable {
  const { message, code } = error as NodeJS.ErrnoException
  return new ProviderUnavailable(code ? `${message} (${code})` : message, { cause: error })
}

/** The error for users while the provider does not respond. */
export const providerError = (issuer: string, problem: string, cause?: unknown): ApiError =>
  new ApiError('ServiceUnavailable', `The identity provider ${issuer} does not answer: ${problem}`, {
    hint: 'Try again when the provider answers; existing logins and tokens keep working',
    retryAfterSeconds: 5,
    cause,
  })
