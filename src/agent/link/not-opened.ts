// Why no connection was opened, in words that say what to do: a proxy that passes no WebSocket, or a server that is too old,
// stays as it is until somebody changes it.
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import { isTransientStatus } from '../../platform/retry.ts'

/** Its servers are the first that keep connections of agents. */
const firstVersion = '3.0.0-alpha.23'
export const advice = 'Let it pass Upgrade for /api/: see docs/operate/install.md, Behind a proxy'

/** `address`: of the server, as the agent was given it. */
export function notOpened(address: string, error: unknown): unknown {
  if (error instanceof ConnectionError) return error.fault === 'lost' ? cutOff(address, error) : error
  if (!(error instanceof ApiError)) return error
  const { foreignStatus } = error.options
  if (foreignStatus !== undefined) return isPassing(foreignStatus) ? error : notPassed(address, foreignStatus, error)
  // The server got a request without an Upgrade.
  if (error.code === 400) return notPassed(address, 400, error)
  if (error.code === 404) return tooOld(address, error)
  return error
}

/** Of a proxy whose server is away or busy. One that does not know what an Upgrade is says 501. */
const isPassing = (status: number): boolean => isTransientStatus(status) && status !== 501

const notPassed = (address: string, status: number, cause: Error): ConnectionError => {
  const what = `The proxy in front of ${address} did not pass a WebSocket (HTTP ${status})`
  return new ConnectionError('unusable', address, what, advice, cause)
}

const tooOld = (address: string, cause: Error): ConnectionError => {
  const what = `The server at ${address} is older than ${firstVersion} and keeps no connections of agents`
  return new ConnectionError('unusable', address, what, 'Upgrade the server first', cause)
}

/** Some proxies hang up; so does a server that ends just now, which needs nobody. */
const cutOff = (address: string, { message, hint, cause }: ConnectionError): ConnectionError => {
  const what = `${message} before a WebSocket was open. If this repeats: does a proxy in front of it pass Upgrade for /api/?`
  return new ConnectionError('lost', address, what, hint, cause)
}
