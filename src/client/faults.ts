// Messages and hints for failed connections, by the error code of the socket.
import { ConnectionError, type ConnectionFault } from './transport.ts'

interface Fault {
  readonly fault: ConnectionFault
  readonly what: string
  readonly hint: string
}

export const checkAddress = 'Check the address of the server'
// The hint must not suggest http://. An attacker on the path can provoke this error, and would then get the token in
// clear.
const notTls: Fault = {
  fault: 'unusable',
  what: 'the server does not use TLS on this port',
  hint: 'Check the address and the port with the operator of the server',
}
const faults: Readonly<Record<string, Fault>> = {
  ECONNREFUSED: { fault: 'refused', what: 'connection refused', hint: 'Start the server, or check its address' },
  ENOTFOUND: { fault: 'refused', what: 'unknown host name', hint: checkAddress },
  EAI_AGAIN: { fault: 'refused', what: 'the host name lookup failed', hint: 'Check the network' },
  EHOSTUNREACH: { fault: 'refused', what: 'the host is unreachable', hint: 'Check the network' },
  ENETUNREACH: { fault: 'refused', what: 'the network is unreachable', hint: 'Check the network' },
  ETIMEDOUT: { fault: 'timeout', what: 'the connection timed out', hint: 'Check the network' },
  UND_ERR_CONNECT_TIMEOUT: { fault: 'timeout', what: 'the connection timed out', hint: 'Check the network' },
  EPROTO: notTls,
  ERR_SSL_WRONG_VERSION_NUMBER: notTls,
  HPE_INVALID_CONSTANT: { fault: 'unusable', what: 'the server does not use HTTP on this port', hint: checkAddress },
}
const certificate: Fault = {
  fault: 'unusable',
  what: 'the certificate is not trusted',
  hint: 'Set NODE_EXTRA_CA_CERTS to the CA certificate that signed it',
}
const lost: Fault = {
  fault: 'lost',
  what: 'the connection was lost',
  hint: 'Try again; the server log may have the cause',
}

export function connectionError(url: string, error: Error & { readonly code?: string | undefined }): ConnectionError {
  const { origin } = new URL(url)
  const code = error.code ?? ''
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code)
  const { fault, what, hint } = faults[code] ?? (isCertificate ? certificate : lost)
  return new ConnectionError(fault, origin, `Cannot reach ${origin}: ${what}${code && ` (${code})`}`, hint, error)
}
