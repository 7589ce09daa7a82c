// A failure of a socket in words: who did not answer, why, and whether trying again can help.
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import { redactUrl } from './redact.ts'

const problems: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no registry answers there',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'it is silent',
}

/** Code and words of OpenSSL → fault, where it is not that the registry is unavailable. */
const finalFaults: readonly (readonly [RegExp, RegistryFault, string])[] = [
  [/wrong.version.number|http.request|packet.length.too.long/i, 'plain', 'it does not speak TLS there'],
  [/ALERT|\balert\b/, 'refused', 'it refuses the TLS connection'],
  [/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/, 'untrusted', 'its certificate is not trusted'],
  [/^ENOTFOUND/, 'notFound', 'the host name is not known'],
  [/^EPROTO|^ERR_SSL/, 'refused', 'it and we do not agree on TLS'],
  [/^HPE_/, 'refused', 'it does not speak HTTP there'],
]

export const isUnknownHost = (error: unknown): error is RegistryError =>
  error instanceof RegistryError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOTFOUND'

export function networkError(url: URL, error: NodeJS.ErrnoException): RegistryError {
  if (error instanceof RegistryError) return error
  // Of several addresses tried, the first tells.
  const first = error instanceof AggregateError ? ((error.errors[0] ?? error) as NodeJS.ErrnoException) : error
  const { code = '' } = first
  const told = /^EPROTO|^ERR_SSL/.test(code) ? `${code} ${first.message}` : code
  const [, fault = 'unavailable', final] = finalFaults.find(([form]) => form.test(told)) ?? []
  const problem = final ?? problems[code] ?? 'the connection was lost'
  return new RegistryError(fault, `${redactUrl(url)}: ${problem}${code === '' ? '' : ` (${code})`}`, {
    ...(fault === 'untrusted' && { hint: `give the authority that signed it (${url.host})` }),
    cause: error,
  })
}
