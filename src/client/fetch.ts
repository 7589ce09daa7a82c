// Requests by fetch, for browsers and other runtimes.
import { connectionError } from './faults.ts'
import type { Fetch } from './npm/options.ts'
import { ConnectionError, readText, type Transport, type TransportResponse } from './transport.ts'

type FetchResponse = Awaited<ReturnType<Fetch>>

interface FetchTransportOptions {
  readonly fetch: Fetch
  /** Makes the error for a failed request (default: by the code of the failure). */
  readonly unreachable?: (url: string, cause: unknown) => ConnectionError
}

export function fetchTransport({ fetch, unreachable = unreachableBy }: FetchTransportOptions): Transport {
  return async ({ method, url, headers, body, signal }) => {
    const fail = (error: unknown): unknown => (signal.aborted ? signal.reason : unreachable(url, error))
    const init = {
      method,
      headers: { ...headers },
      signal,
      // A redirect could send the token to another server.
      redirect: 'manual' as const,
      ...(body !== undefined && { body }),
    }
    const response = await fetch(url, init).catch((error: unknown) => Promise.reject(fail(error)))
    return responseOf(response, url, fail)
  }
}

/** Node has the code in the cause, Bun in the error itself, browsers have none. */
function unreachableBy(url: string, error: unknown): ConnectionError {
  const { cause, code } = error as { cause?: { code?: unknown }; code?: unknown }
  const found = cause?.code ?? code
  if (!URL.canParse(url)) {
    return new ConnectionError('unusable', url, `Invalid address ${url}`, 'Use https://HOST:PORT', error)
  }
  return connectionError(
    url,
    Object.assign(new Error(String(error), { cause: error }), { code: typeof found === 'string' ? found : undefined }),
  )
}

type Fail = (error: unknown) => unknown

function responseOf(response: FetchResponse, url: string, fail: Fail): TransportResponse {
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    get body() {
      return chunksOf(response, fail)
    },
    text: (maxBytes) => readText(chunksOf(response, fail), url, maxBytes),
  }
}

async function* chunksOf(response: FetchResponse, fail: Fail): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader()
  if (!reader) return
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => Promise.reject(fail(error)))
      if (done) return
      if (value) yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
