// Explains why no connection was opened. A proxy that does not pass WebSockets, or a server that is too old, has to be
// changed by its operator, so the error says what to do.
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import { isTransientStatus } from '../../platform/retry.ts'

/** The first version whose servers keep connections of agents. */
const firstVersion = '3.0.0-alpha.23'
export const advice = 'Let it pass Upgrade for /api/: see docs/operate/install.md, Behind a proxy'

/** `address` is the configured address of the server. */
export function notOpened(address: string, error: unknown): unknown {
  if (error instanceof ConnectionError) return error.fault === 'lost' ? cutOff(address, error) : error
  if (!(error instanceof ApiError)) return error
  const { foreignStatus } = error.options
  if (foreignStatus !== undefined) return isTemporary(foreignStatus) ? error : notPassed(address, foreignStatus, error)
  // The server received the request without its Upgrade.
  if (error.code === 400) return notPassed(address, 400, error)
  if (error.code === 404) return tooOld(address, error)
  return error
}

/** Whether the server behind a proxy is down or busy. Status 501 is of a proxy that does not support Upgrade. */
const isTemporary = (status: number): boolean => isTransientStatus(status) && status !== 501

const notPassed = (address: string, status: number, cause: Error): ConnectionError => {
  const what = `The proxy in front of ${address} did not pass a WebSocket (HTTP ${status})`
  return new ConnectionError('unusable', address, what, advice, cause)
}

const tooOld = (address: string, cause: Error): ConnectionError => {
  const what = `The server at ${address} is older than ${firstVersion} and keeps no connections of agents`
  return new ConnectionError('unusable', address, what, 'Upgrade the server first', cause)
}

/** Some proxies close the connection. So does a server that is stopping, which is no reason to change anything. */
const cutOff = (address: string, { message, hint, cause }: ConnectionError): ConnectionError => {
  const what = `${message} before a WebSocket was open. If this repeats: does a proxy in front of it pass Upgrade for /api/?`
  return new ConnectionError('lost', address, what, hint, cause)
}
