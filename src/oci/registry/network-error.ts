// Connection failures as RegistryErrors.
import { HttpError } from '../../platform/http.ts'
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import { redactUrl } from './redact.ts'

/** By code and OpenSSL message. Anything else is a lost connection. */
const faults: readonly (readonly [RegExp, RegistryFault, string])[] = [
  [/wrong.version.number|http.request|packet.length.too.long/i, 'plain', 'it does not use TLS on this port'],
  [/ALERT|\balert\b/, 'refused', 'it refuses the TLS connection'],
  [/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/, 'untrusted', 'the certificate is not trusted'],
  [/^ENOTFOUND/, 'unknownHost', 'unknown host name'],
  [/^ECONNREFUSED/, 'unreachable', 'connection refused'],
  [/^EAI_AGAIN/, 'unavailable', 'the host name lookup failed'],
  [/^EHOSTUNREACH/, 'unavailable', 'the host is unreachable'],
  [/^ENETUNREACH/, 'unavailable', 'the network is unreachable'],
  [/^ETIMEDOUT/, 'unavailable', 'the connection timed out'],
  [/^EPROTO|^ERR_SSL/, 'refused', 'TLS negotiation failed'],
  [/^HPE_/, 'refused', 'it does not use HTTP on this port'],
]

/** Hints about faults. They depend on where the registry is configured. */
export type ConnectHints = Readonly<Partial<Record<RegistryFault, string>>>

export function networkError(url: URL, error: NodeJS.ErrnoException, hints: ConnectHints = {}): RegistryError {
  if (error instanceof RegistryError) return error
  if (error instanceof HttpError) return new RegistryError('invalid', `${redactUrl(error.url)} ${error.message}`)
  const first = error instanceof AggregateError ? ((error.errors[0] ?? error) as NodeJS.ErrnoException) : error
  const { code = '' } = first
  const told = /^EPROTO|^ERR_SSL/.test(code) ? `${code} ${first.message}` : code
  const [, fault = 'unavailable', problem = 'the connection was lost'] = faults.find(([form]) => form.test(told)) ?? []
  const hint = hints[fault]
  const { silentMs } = first as { silentMs?: number }
  return new RegistryError(fault, `${redactUrl(url)}: ${problem}${code === '' ? '' : ` (${code})`}`, {
    ...(hint !== undefined && { hint }),
    silentMs,
    cause: error,
  })
}
