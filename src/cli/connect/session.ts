// Creates the API client of a command.
import { type Client, createClient } from '../../client/client.ts'
import { httpTransport } from '../../client/http.ts'
import { ConnectionError, type Transport } from '../../client/transport.ts'
import type { Host } from '../host.ts'
import { explainRefusal, type ServerConnection } from './connection.ts'
import { debugged } from './debug.ts'
import { keptRevision } from './kept-revision.ts'
import { trustFor } from './trust.ts'

interface SessionLimits {
  readonly timeoutMs?: number
  readonly attempts?: number
  /** Values that --debug must not show. */
  readonly secrets?: ReadonlySet<string>
}

export function openClient(
  host: Host,
  connection: ServerConnection,
  { timeoutMs, attempts, secrets }: SessionLimits,
): Client {
  return createClient({
    baseUrl: connection.apiUrl,
    token: connection.token,
    userAgent: `${host.calledAs}-cli`,
    revision: keptRevision(host, connection.apiUrl),
    transport: transportFor(host, connection, secrets),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(attempts !== undefined && { retry: { attempts } }),
  })
}

/** The transport for requests to the service and its identity provider. */
export function transportFor(
  host: Host,
  connection: ServerConnection,
  secrets: ReadonlySet<string> = new Set(),
): Transport {
  const plain = explained(httpTransport({ trust: trustFor(host, connection) }), host, connection)
  return host.env.SVC3_DEBUG ? debugged(plain, host, secrets) : plain
}

/** Explains a refused connection, which new users meet first, with how to start the service. */
function explained(transport: Transport, host: Host, connection: ServerConnection): Transport {
  return async (request) => {
    try {
      return await transport(request)
    } catch (error) {
      const code = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code
      if (!(error instanceof ConnectionError) || code !== 'ECONNREFUSED') throw error
      const { message, hint } = explainRefusal(host, connection)
      throw new ConnectionError(error.fault, error.address, message, hint, error)
    }
  }
}
