// Sends requests to a registry and to addresses that it names. Only the registry's own origin gets credentials.
import type { LookupFunction } from 'node:net'
import tls from 'node:tls'
import {
  createHttpClient,
  type HttpClient,
  type HttpRequest,
  type HttpResponse,
  locationOf as locationIn,
  readAll,
} from '../../platform/http.ts'
import { type AddressKind, type AddressPolicy, addressKind, isAllowedAddress } from '../../rules/address-kinds.ts'
import { RegistryError } from '../artifact/errors.ts'
import { type ConnectHints, networkError } from './network-error.ts'
import { redactUrl } from './redact.ts'

export interface ConnectOptions {
  /** A function decides by host, if the administrator allows one host more than others. */
  readonly policy: AddressPolicy | ((host: string) => AddressPolicy)
  /** PEM of an additional trusted CA. */
  readonly ca?: string | undefined
  readonly maxSockets?: number | undefined
  /** Tests only: replaces the system's resolver. */
  readonly lookup?: LookupFunction | undefined
  readonly allowInsecure?: boolean | undefined
}

export interface SendOptions {
  readonly client: HttpClient
  readonly origin: string
  readonly allowInsecure: boolean
  readonly hints?: ConnectHints | undefined
}

const maxRedirects = 5

/** The registry at `origin` may redirect to plain HTTP only if it uses plain HTTP itself and `allowInsecure` is set. */
export function registryClient(options: ConnectOptions, origin: string, idleMs: number): HttpClient {
  const { policy, ca, maxSockets = 16, lookup, allowInsecure = false } = options
  const policyOf = typeof policy === 'function' ? policy : () => policy
  return createHttpClient({
    idleMs,
    maxSockets,
    lookup,
    ca: ca === undefined ? undefined : [...tls.getCACertificates('default'), ca],
    checkUrl(url, from) {
      if (url.protocol === 'https:') return
      const isClear = url.protocol === 'http:' && from.protocol === 'http:' && origin.startsWith('http:')
      if (!isClear || !allowInsecure) throw new RegistryError('insecure', `${redactUrl(url)} is not https`)
    },
    checkAddress: (address, host) =>
      isAllowedAddress(address, policyOf(host))
        ? undefined
        : new RegistryError('address', `"${host}" has no allowed address`, {
            // Where the policy is a function, the operator has named the registry in another place.
            setting: typeof policy === 'function' ? undefined : settings[addressKind(address)],
          }),
  })
}

const settings: Readonly<Partial<Record<AddressKind, string>>> = {
  private: 'registries.allowPrivate',
  loopback: 'registries.allowLoopback',
}

export async function send(request: HttpRequest, { client, origin, hints }: SendOptions): Promise<HttpResponse> {
  const authorization = request.url.origin === origin ? request.authorization : undefined
  try {
    return await client.send({ maxRedirects, ...request, authorization })
  } catch (error) {
    request.signal?.throwIfAborted()
    throw networkError(request.url, error as Error, hints)
  }
}

export function registryLocation(location: string, base: URL): URL {
  try {
    return locationIn(location, base)
  } catch (error) {
    throw networkError(base, error as Error)
  }
}

export const readBounded = (response: HttpResponse, maxBytes: number): Promise<Buffer> =>
  readAll(response, maxBytes).catch((error: unknown) => {
    throw networkError(response.url, error as Error)
  })
