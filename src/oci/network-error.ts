// A failure of a socket in words: who did not answer, why, and whether trying again can help.
import { RegistryError, type RegistryFault } from './errors.ts'
import { redactUrl } from './redact.ts'

const problems: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'no registry answers there',
  EAI_AGAIN: 'the host name cannot be looked up now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ETIMEDOUT: 'it is silent',
}

/** code → fault, where it is not that the registry is unavailable. */
const finalFaults: readonly (readonly [RegExp, RegistryFault, string])[] = [
  [/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/, 'untrusted', 'its certificate is not trusted'],
  [/^ENOTFOUND$/, 'notFound', 'the host name is not known'],
  [/^EPROTO$|WRONG_VERSION_NUMBER/, 'plain', 'it does not speak TLS there'],
  [/^HPE_/, 'refused', 'it does not speak HTTP there'],
]

export function networkError(url: URL, error: NodeJS.ErrnoException): RegistryError {
  if (error instanceof RegistryError) return error
  // Of several addresses tried, the first tells.
  const { code = '' } = error instanceof AggregateError ? ((error.errors[0] ?? error) as NodeJS.ErrnoException) : error
  const [, fault = 'unavailable', final] = finalFaults.find(([form]) => form.test(code)) ?? []
  const problem = final ?? problems[code] ?? 'the connection was lost'
  return new RegistryError(fault, `${redactUrl(url)}: ${problem}${code === '' ? '' : ` (${code})`}`, {
    ...(fault === 'untrusted' && { hint: `give the authority that signed it (${url.host})` }),
    cause: error,
  })
}
