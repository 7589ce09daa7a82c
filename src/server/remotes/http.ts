// HTTP requests to remotes. The host that an administrator configured is trusted; a redirect may lead to public
// addresses, and to private ones only where the remote itself has such an address (SSRF).
import { createHttpClient, HttpError, type HttpResponse } from '../../platform/http.ts'
import { isTransientStatus, type RetryPolicy } from '../../platform/retry.ts'
import { type AddressKind, addressKind, mayLeadTo } from '../../rules/address-kinds.ts'

export interface RemoteAddress {
  readonly name: string
  readonly url: URL
  readonly allowInsecure: boolean
  /** In PEM. Default: the authorities that Node trusts. */
  readonly authorities: readonly string[] | undefined
  /** Tests only. */
  readonly retry: RetryPolicy | undefined
}

export class RemoteError extends Error {
  override readonly name = 'RemoteError'
  readonly isTransient: boolean
  constructor(message: string, isTransient: boolean, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.isTransient = isTransient
  }
}

const maxRedirects = 5
const idleMs = 30_000

interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** Sends a GET without credentials, and returns a response with status 200 or 206. Throws RemoteError for others. */
export async function getFrom(
  { name, url: own, allowInsecure, authorities }: RemoteAddress,
  url: URL,
  { headers, signal }: GetOptions,
): Promise<HttpResponse> {
  const ownKinds = new Set<AddressKind>()
  let current = url
  // The client is not shared, because the address of a pooled connection may have been checked under other rules.
  const client = createHttpClient({
    idleMs,
    maxSockets: 0,
    ca: authorities,
    checkUrl(next) {
      current = next
      if (next.protocol !== 'https:' && !(next.protocol === 'http:' && allowInsecure))
        throw new RemoteError(`Remote ${name} redirects to ${shortened(next)}, which is not https`, false)
    },
    checkAddress(address) {
      const kind = addressKind(address)
      const isOwn = current.origin === own.origin
      if (isOwn) ownKinds.add(kind)
      if (isOwn || mayLeadTo(kind, ownKinds)) return undefined
      const what = `Remote ${name} redirects to ${shortened(current)}, a ${kind} address, which is not allowed`
      return new RemoteError(what, false)
    },
  })
  try {
    const all = { 'accept-encoding': 'identity', ...headers }
    const response = await client.send({ method: 'GET', url, headers: all, signal, maxRedirects })
    const { status, body } = response
    if (status !== 200 && status !== 206)
      throw new RemoteError(`Remote ${name} answered ${status} for ${shortened(current)}`, isTransientStatus(status))
    body.once('close', () => client.close())
    return response
  } catch (error) {
    client.close()
    signal.throwIfAborted()
    throw remoteError(error, name, current)
  }
}

/** Runs work of a remote with a timeout. `what` names the remote in the error. */
export async function inTime<T>(
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(timeoutMs)
  try {
    return await work(AbortSignal.any([signal, limit]))
  } catch (error) {
    signal.throwIfAborted()
    if (limit.aborted) throw new RemoteError(`${what} took more than ${timeoutMs / 1_000} s`, true)
    throw error
  }
}

/** Converts an error of a request to a RemoteError. */
export function remoteError(error: unknown, name: string, url: URL): RemoteError {
  if (error instanceof RemoteError) return error
  if (error instanceof HttpError) return new RemoteError(`Remote ${name} ${error.message}`, false, error)
  const { code = 'failed', silentMs } = error as NodeJS.ErrnoException & { readonly silentMs?: number }
  if (silentMs !== undefined)
    return new RemoteError(`Remote ${name} sent nothing for ${silentMs / 1_000} s`, true, error)
  const isUntrusted = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code)
  const what = isUntrusted ? 'the certificate is not trusted' : 'the connection failed'
  return new RemoteError(`Remote ${name} at ${url.host}: ${what} (${code})`, !isUntrusted, error)
}

/** Omits the query and the user info, which may be secret. */
const shortened = ({ origin, pathname }: URL): string => `${origin}${pathname}`.slice(0, 200)
