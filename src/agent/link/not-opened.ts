// Explains why no connection was opened. A proxy that does not pass WebSockets has to be changed by its operator, so the
// error says what to do.
import { ApiError } from '../../api/errors.ts'
import { ConnectionError } from '../../client/transport.ts'
import { isTransientStatus } from '../../platform/retry.ts'

export const advice = 'Let it pass Upgrade for /api/: see docs/operate/install.md, Behind a proxy'

/** `address` is the configured address of the server. */
export function notOpened(address: string, error: unknown): unknown {
  if (error instanceof ConnectionError) return error.fault === 'lost' ? cutOff(address, error) : error
  if (!(error instanceof ApiError)) return error
  const { foreignStatus } = error.options
  if (foreignStatus !== undefined) return isTemporary(foreignStatus) ? error : notPassed(address, foreignStatus, error)
  // The server received the request without its Upgrade.
  return error.code === 400 ? notPassed(address, 400, error) : error
}

/** Whether the server behind a proxy is down or busy. Status 501 is of a proxy that does not support Upgrade. */
const isTemporary = (status: number): boolean => isTransientStatus(status) && status !== 501

const notPassed = (address: string, status: number, cause: Error): ConnectionError => {
  const what = `The proxy in front of ${address} did not pass a WebSocket (HTTP ${status})`
  return new ConnectionError('unusable', address, what, advice, cause)
}

/** Some proxies close the connection. So does a server that is stopping, which is no reason to change anything. */
const cutOff = (address: string, { message, hint, cause }: ConnectionError): ConnectionError => {
  const what = `${message} before a WebSocket was open. If this repeats: does a proxy in front of it pass Upgrade for /api/?`
  return new ConnectionError('lost', address, what, hint, cause)
}
