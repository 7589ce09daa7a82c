// What can go wrong with a registry: one class, a fault that programs read, and words for people. No message carries a
// credential, nor the query of an address, which may be one.

/** fault → whether trying again can help without anybody doing anything. */
const faults = {
  /** The address is not one that may be connected to from here. */
  address: false,
  /** Plain HTTP where it is not allowed. */
  insecure: false,
  /** Does not speak TLS where it was to. */
  plain: false,
  /** The certificate is not trusted. */
  untrusted: false,
  unauthorized: false,
  forbidden: false,
  notFound: false,
  /** The name of its host is unknown. */
  unknownHost: false,
  tooLarge: false,
  /** Any other refusal. */
  refused: false,
  /** It answered, and what it answered is wrong: digest, size, media type, form. */
  invalid: false,
  /** An upload that the registry does not know any more, or knows otherwise. */
  session: true,
  rateLimited: true,
  /** Does not answer, breaks off, is silent, or says that it is in trouble. */
  unavailable: true,
} as const
export type RegistryFault = keyof typeof faults

interface RegistryErrorOptions {
  readonly hint?: string
  readonly status?: number
  readonly retryAfterMs?: number | undefined
  readonly silentMs?: number | undefined
  readonly cause?: unknown
}

export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly fault: RegistryFault
  /** The message without the hint. */
  readonly problem: string
  readonly hint: string
  readonly status: number | undefined
  /** How long the registry asked to be left alone. */
  readonly retryAfterMs: number | undefined
  /** A timeout: how long it had not answered by then. */
  readonly silentMs: number | undefined

  constructor(fault: RegistryFault, problem: string, options: RegistryErrorOptions = {}) {
    const { hint = hints[fault], status, retryAfterMs, silentMs, cause } = options
    super(`${problem}. ${hint}`, cause === undefined ? {} : { cause })
    this.fault = fault
    this.problem = problem
    this.hint = hint
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.silentMs = silentMs
  }

  get isTransient(): boolean {
    return faults[this.fault]
  }
}

const hints: Readonly<Record<RegistryFault, string>> = {
  address: 'Use a registry with a public address, or ask an administrator to allow private ones',
  insecure: 'Use https, or store credentials for its http:// address: svc3 regcred add --allow-insecure',
  plain: 'Use https, or store credentials for its http:// address: svc3 regcred add --allow-insecure',
  untrusted: 'Add the CA that signed its certificate to config.json of the server',
  unauthorized: 'Store the correct user name and password with svc3 regcred add --replace',
  forbidden: 'Ask the operator of the registry for access to this repository',
  notFound: 'Check the name and the tag',
  unknownHost: 'Check the host name, and the DNS of the server',
  tooLarge: 'Ask the operator of the registry to allow larger uploads',
  refused: 'Correct what the registry reports, then try again',
  invalid: 'Push the image again, or tell the operator of the registry',
  session: 'Try again',
  rateLimited: 'Try again later',
  unavailable: 'Try again when the registry answers',
}
