// HTTP requests of the console. The session is a cookie that scripts cannot read. The custom header protects against
// cross-site requests: a form on another site cannot set it.
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
