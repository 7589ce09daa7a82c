// Logs a browser in at an identity provider by the authorization code flow with PKCE. The server runs it, so that tokens of
// the provider never reach the page. The built-in provider and others are used in the same way.
import { createHash, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { ApiError } from '../../api/errors.ts'
import type { ProviderLogin } from './browser-sessions.ts'
import type { LoginIdentity } from './oidc.ts'
import { discover, endpointIn, providerError, sendToProvider, unavailable } from './provider-fetch.ts'

interface Endpoints {
  readonly authorization: string
  readonly token: string
  readonly revocation: string | undefined
  /** Undefined if the provider does not list them. */
  readonly scopes: readonly string[] | undefined
}

interface FormAnswer {
  readonly status: number
  readonly body: unknown
}

/** How to reach the provider. */
export interface ProviderConnection {
  readonly clientId: string
  endpoints(): Promise<Endpoints>
  post(endpoint: string, form: URLSearchParams): Promise<FormAnswer>
}

/** The state of a login, which a cookie of the browser keeps until the provider redirects back. */
export interface LoginState {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

export interface CodeFlow {
  begin(redirectUri: string): Promise<LoginState & { readonly url: string }>
  finish(code: string, redirectUri: string, login: LoginState): Promise<ProviderLogin>
  /** Returns undefined if the provider has ended the login. */
  refresh(refreshToken: string): Promise<ProviderLogin | undefined>
  /** Best effort, because the login has already ended here. */
  revoke(refreshToken: string): Promise<void>
}

const wantedScopes = ['openid', 'email', 'groups', 'offline_access']
const random = (): string => randomBytes(32).toString('base64url')

export function createCodeFlow(
  provider: ProviderConnection,
  identity: Pick<LoginIdentity, 'verify' | 'issuer'>,
): CodeFlow {
  const ask = async (fields: Readonly<Record<string, string>>): Promise<TokenResponse | undefined> => {
    const { token } = await reached(provider.endpoints(), identity.issuer)
    const form = new URLSearchParams({ ...fields, client_id: provider.clientId })
    return tokenResponseOf(await reached(provider.post(token, form), identity.issuer), identity.issuer)
  }
  const loginOf = async ({ idToken, accessToken, refreshToken }: TokenResponse): Promise<ProviderLogin> => ({
    user: await identity.verify(idToken, accessToken),
    refreshToken,
  })

  return {
    async begin(redirectUri) {
      const { authorization, scopes } = await reached(provider.endpoints(), identity.issuer)
      const login = { state: random(), nonce: random(), verifier: random() }
      const url = new URL(authorization)
      const query = {
        client_id: provider.clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: wantedScopes.filter((scope) => !scopes || scopes.includes(scope)).join(' '),
        code_challenge: createHash('sha256').update(login.verifier).digest('base64url'),
        code_challenge_method: 'S256',
        state: login.state,
        nonce: login.nonce,
        // Without this, the provider's own session would log the user in again after a logout.
        prompt: 'login',
      }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      return { ...login, url: url.href }
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
      const login = await loginOf(granted).catch(undefinedIfEnded)
      if (!login) return undefined
      // A provider without rotation returns no new token, and the old one stays valid.
      return { ...login, refreshToken: login.refreshToken ?? refreshToken }
    },
    async revoke(refreshToken) {
      const { revocation } = await provider.endpoints()
      if (revocation === undefined) return
      const fields = { token: refreshToken, token_type_hint: 'refresh_token', client_id: provider.clientId }
      await provider.post(revocation, new URLSearchParams(fields))
    },
  }
}

/** If the provider no longer names a valid user, the login has ended. */
function undefinedIfEnded(error: unknown): undefined {
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

interface TokenResponse {
  readonly idToken: string
  readonly accessToken: string | undefined
  readonly refreshToken: string | undefined
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Returns undefined if the provider refused. */
function tokenResponseOf({ status, body }: FormAnswer, issuer: string): TokenResponse | undefined {
  const answer = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (status === 400 || status === 401) return undefined
  const idToken = text(answer.id_token)
  if (status !== 200 || idToken === undefined) throw providerError(issuer, `it answered ${status}, without an ID token`)
  return { idToken, accessToken: text(answer.access_token), refreshToken: text(answer.refresh_token) }
}

const reached = <T>(work: Promise<T>, issuer: string): Promise<T> =>
  work.catch((error: unknown) => {
    throw error instanceof ApiError ? error : providerError(issuer, unavailable(error).message, error)
  })

const freshMs = 10 * 60_000
const timeoutMs = 10_000

/** A provider other than the built-in one, found by its discovery document. */
export function connectProvider(issuer: string, clientId: string): ProviderConnection {
  let known: { readonly atMs: number; readonly endpoints: Endpoints } | undefined
  return {
    clientId,
    async endpoints() {
      if (known && performance.now() - known.atMs < freshMs) return known.endpoints
      const document = await discover(issuer)
      const authorization = endpointIn(document, 'authorization_endpoint', issuer)
      const token = endpointIn(document, 'token_endpoint', issuer)
      if (!authorization || !token) throw new Error('its discovery document has no usable endpoints')
      const scopes = document.scopes_supported
      const endpoints = {
        authorization,
        token,
        revocation: endpointIn(document, 'revocation_endpoint', issuer),
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
