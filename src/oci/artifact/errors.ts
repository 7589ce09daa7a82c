// Errors of registries. The fault is for programs, the message for users. Messages contain no credentials and no query
// strings, which may be credentials.

/** Each fault, and whether a retry may succeed without intervention. */
const faults = {
  /** The address policy forbids the address. */
  address: false,
  /** Plain HTTP, which is not allowed for this registry. */
  insecure: false,
  /** The port does not speak TLS. */
  plain: false,
  untrusted: false,
  unauthorized: false,
  forbidden: false,
  notFound: false,
  unknownHost: false,
  /** No connection to a registry that has never answered. */
  unreachable: false,
  tooLarge: false,
  refused: false,
  /** The response is wrong: digest, size, media type or form. */
  invalid: false,
  /** The registry has lost the upload session, or expects another offset of it. */
  session: true,
  rateLimited: true,
  /** No response, an interrupted one, or an error of the server. */
  unavailable: true,
} as const
export type RegistryFault = keyof typeof faults

interface RegistryErrorOptions {
  readonly hint?: string
  readonly status?: number
  readonly retryAfterMs?: number | undefined
  readonly silentMs?: number | undefined
  readonly setting?: string | undefined
  readonly cause?: unknown
}

export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly fault: RegistryFault
  readonly problem: string
  readonly hint: string
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  /** After a timeout, how long the registry had been silent. */
  readonly silentMs: number | undefined
  /** The setting of the server that would allow the address. */
  readonly setting: string | undefined

  constructor(fault: RegistryFault, problem: string, options: RegistryErrorOptions = {}) {
    const { setting, status, retryAfterMs, silentMs, cause } = options
    const allow = setting && `Ask an administrator to set ${setting} in config.json of the server`
    const { hint = allow ?? hints[fault] } = options
    super(`${problem}. ${hint}`, cause === undefined ? {} : { cause })
    this.fault = fault
    this.problem = problem
    this.hint = hint
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.silentMs = silentMs
    this.setting = setting
  }

  get isTransient(): boolean {
    return faults[this.fault]
  }
}

const hints: Readonly<Record<RegistryFault, string>> = {
  address: 'Use a registry with a public address',
  insecure: 'Use https, or store credentials for its http:// address: svc3 regcred add --allow-insecure',
  plain: 'Use https, or store credentials for its http:// address: svc3 regcred add --allow-insecure',
  untrusted: 'Add the CA that signed its certificate to config.json of the server',
  unauthorized: 'Store the correct user name and password with svc3 regcred add --replace',
  forbidden: 'Ask the operator of the registry for access to this repository',
  notFound: 'Check the name and the tag',
  unknownHost: 'Check the host name, and the DNS of the server',
  unreachable: 'Check the host name and the port, and that the registry runs',
  tooLarge: 'Ask the operator of the registry to allow larger uploads',
  refused: 'Correct what the registry reports, then try again',
  invalid: 'Push the image again, or tell the operator of the registry',
  session: 'Try again',
  rateLimited: 'Try again later',
  unavailable: 'Try again when the registry answers',
}
