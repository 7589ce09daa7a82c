// One request to a registry or a place that it names, with its errors in the words of registries. Credentials go to the
// registry's own origin only.
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
import { type AddressPolicy, isAllowedAddress } from '../../rules/address-kinds.ts'
import { RegistryError } from '../artifact/errors.ts'
import { type ConnectHints, networkError } from './network-error.ts'
import { redactUrl } from './redact.ts'

export interface ConnectOptions {
  /** By host where a function: an administrator may allow one host what others are refused. */
  readonly policy: AddressPolicy | ((host: string) => AddressPolicy)
  /** PEM of an authority to trust besides the usual ones. */
  readonly ca?: string | undefined
  readonly maxSockets?: number | undefined
  /** In place of the system's resolver, for tests. */
  readonly lookup?: LookupFunction | undefined
  readonly allowInsecure?: boolean | undefined
}

export interface SendOptions {
  readonly client: HttpClient
  /** The only origin that receives credentials. */
  readonly origin: string
  readonly allowInsecure: boolean
  readonly hints?: ConnectHints | undefined
}

const maxRedirects = 5

/** For the registry at `origin`: it may redirect to plain HTTP only if it uses that itself and `allowInsecure` is set. */
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
        : new RegistryError('address', `"${host}" has no allowed address`),
  })
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

export function locationOf(location: string, base: URL): URL {
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
