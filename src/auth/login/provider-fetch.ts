// Requests to an identity provider: JSON, within seconds, of bounded length, without redirects.
import { createHttpClient, type HttpRequest, readAll } from '../../platform/http.ts'

/** The provider does not answer, or not as a provider does. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
}

/** It answered, but not with 200. */
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

/** A request to the provider. A redirect is an error: it could lead credentials elsewhere. */
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

/** The parser's own message would quote what was sent. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An address that the discovery document names: reached over no plainer way than the issuer's own. */
export function placeIn(about: Record<string, unknown>, field: string, issuer: string): string | undefined {
  const text = about[field]
  const place = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
  return place && (place.protocol === 'https:' || place.protocol === new URL(issuer).protocol) ? place.href : undefined
}

export function unavailable(error: unknown): ProviderUnavailable {
  const { message, code } = error as NodeJS.ErrnoException
  return new ProviderUnavailable(code ? `${message} (${code})` : message, { cause: error })
}
