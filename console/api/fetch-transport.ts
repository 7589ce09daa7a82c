// Requests of the client by fetch. The session is a cookie that this page cannot read; the header shows that the request
// comes from a page of ours and not from a form somewhere else.
import { ConnectionError, type Transport, type TransportResponse, tooLong } from '../../src/client/transport.ts'

export const sessionHeader = { 'x-svc3-console': '1' } as const

const unreachable = (url: string, cause: unknown): ConnectionError =>
  new ConnectionError(
    'lost',
    url,
    'the service cannot be reached',
    'the page notices when it is back; then try again',
    cause,
  )

export const fetchTransport: Transport = async ({ method, url, headers, body, signal }) => {
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...sessionHeader },
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    signal,
    ...(body !== undefined && { body }),
  }).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : unreachable(url, error)
  })
  return responseOf(response, url, signal)
}

function responseOf(response: Response, url: string, signal: AbortSignal): TransportResponse {
  const fail = (error: unknown): unknown => (signal.aborted ? signal.reason : unreachable(url, error))
  return {
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: chunksOf(response, fail),
    text: async (maxBytes) => {
      const text = await response.text().catch((error: unknown) => Promise.reject(fail(error)))
      if (text.length > maxBytes) throw tooLong(url, maxBytes)
      return text
    },
  }
}

async function* chunksOf(response: Response, fail: (error: unknown) => unknown): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader()
  if (!reader) return
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => Promise.reject(fail(error)))
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
