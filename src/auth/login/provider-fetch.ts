// Asking a foreign identity provider: JSON, within seconds, of bounded length, without following it elsewhere.

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

export async function fetchJson(
  url: string,
  get: typeof fetch,
  headers: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>> {
  const signal = AbortSignal.timeout(timeoutMs)
  const response = await get(url, { redirect: 'error', signal, headers: { accept: 'application/json', ...headers } })
  if (response.status !== 200) {
    await response.body?.cancel().catch(() => undefined)
    throw new ProviderAnswered(url, response.status)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the answer of ${url} is too long`)
    chunks.push(chunk)
  }
  const value = parsed(Buffer.concat(chunks).toString('utf8'))
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`the answer of ${url} is not a JSON object`)
  return value as Record<string, unknown>
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
  const { message, cause } = error as Error
  const code = (cause as NodeJS.ErrnoException | undefined)?.code
  return new ProviderUnavailable(code ? `${message} (${code})` : message, { cause: error })
}
