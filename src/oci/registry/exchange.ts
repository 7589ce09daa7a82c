// Requests to one registry: authentication by its challenges, renewal of tokens, retries and errors.
import { discard, type HttpRequest, type HttpResponse } from '../../platform/http.ts'
import { reasonOf } from '../../platform/reason.ts'
import {
  isTransientStatus,
  orAborted,
  type RetryOptions,
  type RetryPolicy,
  retryPolicies,
} from '../../platform/retry.ts'
import { dockerHubApiHost, dockerHubHosts } from '../../rules/registry-server.ts'
import { RegistryError } from '../artifact/errors.ts'
import { type Authorization, type BasicCredentials, createAuthorization } from './authorization.ts'
import type { ConnectHints } from './network-error.ts'
import { Redactor, redactUrl } from './redact.ts'
import { registryError } from './refusal.ts'
import { type ConnectOptions, registryClient, type SendOptions, send } from './send.ts'
import type { OnWaiting } from './waiting.ts'

export interface RegistryOptions extends ConnectOptions {
  /** `https://host[:port]`, or `http://…` with `allowInsecure`. */
  readonly server: string
  readonly credentials?: BasicCredentials | undefined
  readonly retry?: RetryPolicy | undefined
  readonly onWaiting?: OnWaiting | undefined
  /** Do not wait for a registry that refuses the connection, unless it has answered this process before. */
  readonly mayBeMistyped?: boolean | undefined
  /** A connection without data for this long counts as lost. */
  readonly idleMs?: number | undefined
  /** Used in place of hints about the stored credentials of namespaces. */
  readonly hints?: ConnectHints | undefined
}

/** The registries that have answered this process. */
const answered = new Set<string>()
const maxAnswered = 1_000

export interface RegistryExchange {
  readonly origin: URL
  /** Used by all requests to this registry. */
  retryOptions(signal: AbortSignal | undefined): RetryOptions
  readonly idleMs: number
  /** Authenticates for the scopes, and tries again after a 401 while that may help. Does not retry otherwise. */
  ask(ask: Omit<HttpRequest, 'authorization'>, scopes: readonly string[]): Promise<HttpResponse>
  /** The error for an unexpected response. */
  refuse(answer: HttpResponse, doing: string): Promise<RegistryError>
  close(): void
}

export function createExchange(options: RegistryOptions): RegistryExchange {
  const { allowInsecure = false, retry: policy = retryPolicies.registry, idleMs = 60_000, onWaiting } = options
  const origin = new URL(options.server)
  if (dockerHubHosts.includes(origin.hostname)) origin.hostname = dockerHubApiHost
  const { username, password } = options.credentials ?? {}
  const redactor = new Redactor(password === undefined ? [] : [password, `${username}:${password}`])
  const sending: SendOptions = {
    client: registryClient(options, origin.origin, idleMs),
    origin: origin.origin,
    allowInsecure,
    hints: { ...hintsFor(origin), ...options.hints },
  }
  const authorization: Authorization = createAuthorization(options.credentials, sending, redactor)
  let isWaiting = false
  let connection: Promise<void> | undefined
  const isOurs = ({ url }: HttpResponse): boolean => url.origin === origin.origin

  /** Learns how to authenticate, so that no body is sent without credentials. */
  async function connect(): Promise<void> {
    const url = new URL('/v2/', origin)
    const answer = await send({ method: 'GET', url }, sending)
    discard(answer)
    if (answered.size >= maxAnswered) answered.clear()
    answered.add(origin.origin)
    if (answer.status === 401 && isOurs(answer)) authorization.learn(answer, undefined)
    else if (answer.status === 404) throw notRegistry(url)
    else if (isTransientStatus(answer.status)) throw await registryError(answer, 'Connecting', redactor)
  }

  async function connected(signal: AbortSignal | undefined): Promise<void> {
    if (!connection) {
      const connecting = connect()
      connection = connecting
      // The next request tries again.
      connecting.catch(() => {
        if (connection === connecting) connection = undefined
      })
    }
    await orAborted(connection, signal)
  }

  /** A registry that has answered exists, so it may be waited for. */
  const asTransient = (error: unknown): unknown => {
    const { fault, problem = '' } = error as Partial<RegistryError>
    const mayPass = answered.has(origin.origin) || (fault === 'unreachable' && !options.mayBeMistyped)
    const isAway = fault === 'unreachable' || fault === 'unknownHost'
    return mayPass && isAway ? new RegistryError('unavailable', problem, { cause: error }) : error
  }

  async function ask(request: Omit<HttpRequest, 'authorization'>, scopes: readonly string[]): Promise<HttpResponse> {
    await connected(request.signal)
    for (let tries = 1; ; tries += 1) {
      const header = await authorization.header(scopes, request.signal)
      const answer = await send({ ...request, authorization: header }, sending)
      if (isWaiting && answer.status < 500) {
        isWaiting = false
        onWaiting?.(undefined)
      }
      if (answer.status !== 401 || !isOurs(answer) || tries > 2 || !authorization.learn(answer, header)) return answer
      discard(answer)
    }
  }

  return {
    origin,
    retryOptions: (signal) => ({
      policy,
      signal,
      onWait({ error, delayMs }) {
        isWaiting = true
        // Without the hint, because retries need no action.
        const problem = error instanceof RegistryError ? error.problem : reasonOf(error)
        onWaiting?.({ problem, nextTryMs: Math.round(delayMs) })
      },
    }),
    idleMs,
    ask: (request, scopes) =>
      ask(request, scopes).catch((error: unknown) => {
        throw asTransient(error)
      }),
    refuse: (answer, doing) => registryError(answer, doing, redactor),
    close: () => sending.client.close(),
  }
}

const hintsFor = ({ host }: URL): ConnectHints => ({
  untrusted:
    'Add the CA that signed the certificate to registries.ca in config.json of the server: ' +
    `{"registries": {"ca": {"${host}": "/PATH/TO/CA.pem"}}}`,
  plain:
    'Use its TLS port, or ask an administrator to allow plain HTTP: ' +
    `svc3 regcred add http://${host} --allow-insecure --replace -u USER --password-stdin`,
})

const notRegistry = (url: URL): RegistryError =>
  new RegistryError('notFound', `${redactUrl(url)} is not an OCI registry (404)`, { hint: 'Check the address' })
