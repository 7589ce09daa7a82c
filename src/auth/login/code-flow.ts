// Logging a browser in at an identity provider: authorization code with PKCE, carried out by the server, so that what the
// provider hands out never reaches the page. The same for the built-in provider and for any other.
import { createHash, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { ApiError } from '../../api/errors.ts'
import type { ProviderLogin } from './browser-sessions.ts'
import type { LoginIdentity } from './oidc.ts'
import { fetchJson, placeIn, sendToProvider, unavailable } from './provider-fetch.ts'

interface Endpoints {
  readonly authorization: string
  readonly token: string
  readonly revocation: string | undefined
  /** Undefined: the provider does not say. */
  readonly scopes: readonly string[] | undefined
}

interface FormAnswer {
  readonly status: number
  readonly body: unknown
}

/** How the provider is reached. */
export interface ProviderDoor {
  readonly clientId: string
  endpoints(): Promise<Endpoints>
  post(endpoint: string, form: URLSearchParams): Promise<FormAnswer>
}

/** What has to be remembered, in the browser that began, until it comes back. */
export interface LoginBegun {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

export interface CodeFlow {
  begin(redirectUri: string): Promise<LoginBegun & { readonly url: string }>
  finish(code: string, redirectUri: string, begun: LoginBegun): Promise<ProviderLogin>
  /** Undefined when the provider says that the login is over. */
  refresh(refreshToken: string): Promise<ProviderLogin | undefined>
  /** Best effort: the login is over here, whatever the provider makes of it. */
  revoke(refreshToken: string): Promise<void>
}

const wantedScopes = ['openid', 'email', 'groups', 'offline_access']
const random = (): string => randomBytes(32).toString('base64url')

export function createCodeFlow(door: ProviderDoor, identity: Pick<LoginIdentity, 'verify' | 'issuer'>): CodeFlow {
  const ask = async (fields: Readonly<Record<string, string>>): Promise<Granted | undefined> => {
    const { token } = await reached(door.endpoints(), identity.issuer)
    const form = new URLSearchParams({ ...fields, client_id: door.clientId })
    return grantedBy(await reached(door.post(token, form), identity.issuer), identity.issuer)
  }
  const loginOf = async ({ idToken, accessToken, refreshToken }: Granted): Promise<ProviderLogin> => ({
    user: await identity.verify(idToken, accessToken),
    refreshToken,
  })

  return {
    async begin(redirectUri) {
      const { authorization, scopes } = await reached(door.endpoints(), identity.issuer)
      const begun = { state: random(), nonce: random(), verifier: random() }
      const url = new URL(authorization)
      const query = {
        client_id: door.clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: wantedScopes.filter((scope) => !scopes || scopes.includes(scope)).join(' '),
        code_challenge: createHash('sha256').update(begun.verifier).digest('base64url'),
        code_challenge_method: 'S256',
        state: begun.state,
        nonce: begun.nonce,
        // After a logout, nobody gets in with what the provider's own page remembers.
        prompt: 'login',
      }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      return { ...begun, url: url.href }
    },
    async finish(code, redirectUri, { nonce, verifier }) {
      const granted = await ask({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      })
      if (!granted || nonceOf(granted.idToken) !== nonce)
        throw new ApiError('Unauthorized', 'Unauthorized: the identity provider did not confirm this login', {
          hint: 'Log in again',
        })
      return loginOf(granted)
    },
    async refresh(refreshToken) {
      const granted = await ask({ grant_type: 'refresh_token', refresh_token: refreshToken })
      if (!granted) return undefined
      const login = await loginOf(granted).catch(asOver)
      if (!login) return undefined
      // A provider that does not rotate it sends none: the old one stays good.
      return { ...login, refreshToken: login.refreshToken ?? refreshToken }
    },
    async revoke(refreshToken) {
      const { revocation } = await door.endpoints()
      if (revocation === undefined) return
      const fields = { token: refreshToken, token_type_hint: 'refresh_token', client_id: door.clientId }
      await door.post(revocation, new URLSearchParams(fields))
    },
  }
}

/** A provider that now names nobody whom we know has ended the login. */
function asOver(error: unknown): undefined {
  if (error instanceof ApiError && error.reason === 'Unauthorized') return undefined
  throw error
}

function nonceOf(idToken: string): unknown {
  try {
    return decodeJwt(idToken).nonce
  } catch {
    return undefined
  }
}

interface Granted {
  readonly idToken: string
  readonly accessToken: string | undefined
  readonly refreshToken: string | undefined
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Undefined: refused. */
function grantedBy({ status, body }: FormAnswer, issuer: string): Granted | undefined {
  const answer = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (status === 400 || status === 401) return undefined
  const idToken = text(answer.id_token)
  if (status !== 200 || idToken === undefined) throw silent(issuer, `it answered ${status}, without an ID token`)
  return { idToken, accessToken: text(answer.access_token), refreshToken: text(answer.refresh_token) }
}

const silent = (issuer: string, why: string, cause?: unknown): ApiError =>
  new ApiError('ServiceUnavailable', `The identity provider ${issuer} does not answer: ${why}`, {
    hint: 'Try again when the provider answers; existing logins keep working',
    retryAfterSeconds: 5,
    cause,
  })

const reached = <T>(work: Promise<T>, issuer: string): Promise<T> =>
  work.catch((error: unknown) => {
    throw error instanceof ApiError ? error : silent(issuer, unavailable(error).message, error)
  })

const freshMs = 10 * 60_000
const timeoutMs = 10_000

/** A provider elsewhere, met by its discovery document. */
export function foreignDoor(issuer: string, clientId: string): ProviderDoor {
  let known: { readonly atMs: number; readonly endpoints: Endpoints } | undefined
  return {
    clientId,
    async endpoints() {
      if (known && performance.now() - known.atMs < freshMs) return known.endpoints
      const about = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
      if (about.issuer !== issuer) throw new Error(`its issuer is ${JSON.stringify(about.issuer)}, not ${issuer}`)
      const authorization = placeIn(about, 'authorization_endpoint', issuer)
      const token = placeIn(about, 'token_endpoint', issuer)
      if (!authorization || !token) throw new Error('its discovery document has no usable endpoints')
      const scopes = about.scopes_supported
      const endpoints = {
        authorization,
        token,
        revocation: placeIn(about, 'revocation_endpoint', issuer),
        scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : undefined,
      }
      known = { atMs: performance.now(), endpoints }
      return endpoints
    },
    post: (endpoint, form) =>
      sendToProvider(
        endpoint,
        {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: form.toString(),
        },
        timeoutMs,
      ),
  }
}
