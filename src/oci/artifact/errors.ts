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

  constructor(fault: RegistryFault, problem: string, options: RegistryErrorOptions = {}) {
    const { hint = hints[fault], status, retryAfterMs, cause } = options
    super(`${problem}: ${hint}`, cause === undefined ? {} : { cause })
    this.fault = fault
    this.problem = problem
    this.hint = hint
    this.status = status
    this.retryAfterMs = retryAfterMs
  }

  get isTransient(): boolean {
    return faults[this.fault]
  }
}

const hints: Readonly<Record<RegistryFault, string>> = {
  address: 'use a registry with a public address, or ask an administrator to allow private ones',
  insecure: 'use https, or store credentials for it with allowInsecure',
  plain: 'use https, or store credentials for its http:// address with allowInsecure',
  untrusted: 'give the authority that signed its certificate',
  unauthorized: 'store the right user name and password with svc3 regcred add (--replace where there are some)',
  forbidden: 'ask whoever runs the registry for the right to this repository',
  notFound: 'check the name and the tag',
  tooLarge: 'ask whoever runs the registry to allow larger uploads',
  refused: 'the registry says why; correct that and try again',
  invalid: 'tell whoever runs the registry, or push the image again',
  session: 'try again',
  rateLimited: 'try again later',
  unavailable: 'try again when the registry can be reached',
}
