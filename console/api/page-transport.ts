// Requests of the client as this page sends them. The session is a cookie that the page cannot read; the header shows that
// the request comes from a page of ours and not from a form somewhere else.
import { fetchTransport } from '../../src/client/fetch.ts'
import { ConnectionError } from '../../src/client/transport.ts'

export const sessionHeader = { 'x-svc3-console': '1' } as const

const unreachable = (url: string, cause: unknown): ConnectionError =>
  new ConnectionError('lost', url, 'Server not reachable', 'Try again when the page has reconnected', cause)

export const pageTransport = fetchTransport({
  fetch: (url, init) =>
    fetch(url, {
      ...init,
      headers: { ...init.headers, ...sessionHeader },
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
    }),
  unreachable,
})
