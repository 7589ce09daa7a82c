// HTTP requests to remotes. The host that an administrator configured is trusted; redirects are checked at every hop by
// the address connected to, so that neither a name nor a redirect reaches internal hosts (SSRF).
import dns from 'node:dns'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type AddressKind, addressKind, mayLeadTo } from '../../rules/address-kinds.ts'
import { isTransientStatus } from '../../rules/retry.ts'

/** A remote that is reached by HTTP. */
export interface Place {
  /** As the configuration calls it. */
  readonly name: string
  /** Ends in a slash. */
  readonly url: URL
  readonly allowInsecure: boolean
  /** PEM, in addition to those that Node trusts. */
  readonly authorities: readonly string[] | undefined
  /** Between the first two tries; more between later ones. */
  readonly firstDelayMs: number
}

/** What went wrong at a remote, for whoever pulls from it. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError'
  /** A retry may succeed. */
  readonly isTransient: boolean
  constructor(message: string, isTransient: boolean, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.isTransient = isTransient
  }
}

const maxRedirects = 5
const silenceMs = 30_000
const redirects = new Set([301, 302, 303, 307, 308])

interface Asked {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** The answer to a GET, 200 or 206. No credential goes along, and nothing that an earlier answer asked to keep. */
export async function getFrom(place: Place, url: URL, asked: Asked): Promise<IncomingMessage> {
  /** What kind of address the remote itself has. */
  const own = new Set<AddressKind>()
  let next = url
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const answer = await ask(place, next, own, asked)
    const { statusCode = 0, headers } = answer
    if (statusCode === 200 || statusCode === 206) return answer
    answer.destroy()
    if (!redirects.has(statusCode) || headers.location === undefined)
      throw new RemoteError(
        `Remote ${place.name} answered ${statusCode} for ${shown(next)}`,
        isTransientStatus(statusCode),
      )
    if (!URL.canParse(headers.location, next.href))
      throw new RemoteError(`Remote ${place.name} redirects to an invalid address`, false)
    next = new URL(headers.location, next)
  }
  throw new RemoteError(`Remote ${place.name} redirects more than ${maxRedirects} times`, false)
}

function ask(place: Place, url: URL, own: Set<AddressKind>, { headers, signal }: Asked): Promise<IncomingMessage> {
  const { name, allowInsecure, authorities } = place
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && allowInsecure))
    throw new RemoteError(`Remote ${name} redirects to ${shown(url)}, which is not https`, false)
  const isOwn = url.origin === place.url.origin
  const judge = (address: string): RemoteError | undefined => {
    const kind = addressKind(address)
    if (isOwn) own.add(kind)
    if (isOwn || mayLeadTo(kind, own)) return undefined
    return new RemoteError(`Remote ${name} redirects to ${shown(url)}, a ${kind} address, which is not allowed`, false)
  }
  // A literal address is never looked up.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const refused = isIP(host) ? judge(host) : undefined
  if (refused) throw refused

  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = (url.protocol === 'https:' ? https : http).request(url, {
    // A connection of its own: one that was made under other rules is not taken over.
    agent: false,
    headers: { 'user-agent': 'svc3', 'accept-encoding': 'identity', ...headers },
    lookup: judgedLookup(judge),
    signal,
    ...(authorities && { ca: [...authorities] }),
  })
  request.setTimeout(silenceMs, () =>
    request.destroy(new RemoteError(`Remote ${name} sent nothing for ${silenceMs / 1_000} s`, true)),
  )
  request.on('response', resolve)
  request.on('error', (error) => reject(signal.aborted ? signal.reason : reasonOf(error, name, url)))
  request.end()
  return promise
}

/** Every address that the name stands for must be good: which one is taken is not ours to say. */
function judgedLookup(judge: (address: string) => RemoteError | undefined): LookupFunction {
  return (hostname, options, callback) =>
    dns.lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const refused = addresses?.map(({ address }) => judge(address)).find((each) => each !== undefined)
      const first = addresses?.[0]
      if (error || refused || !first) callback(error ?? refused ?? new Error('no address'), '', 0)
      else if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
}

/** As a failure of the remote, whatever the socket says. */
export function reasonOf(error: unknown, name: string, url: URL): RemoteError {
  if (error instanceof RemoteError) return error
  const { code = 'failed' } = error as NodeJS.ErrnoException
  const isUntrusted = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code)
  const what = isUntrusted ? 'the certificate is not trusted' : 'the connection failed'
  return new RemoteError(`Remote ${name} at ${url.host}: ${what} (${code})`, !isUntrusted, error)
}

/** Without what may be a secret in it. */
const shown = ({ origin, pathname }: URL): string => `${origin}${pathname}`.slice(0, 200)
