// The configuration of oidc-provider for the built-in provider. Its clients are the command line and the console, so there is
// no consent page. Loaded with the first login.
import Provider, { type Configuration, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider'
import type { Log } from '../../platform/log.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import { createLoginAdapter, type LoginStorage } from './login-adapter.ts'
import { deviceCodePage, deviceConfirmPage, messagePage, pageHeaders } from './login-pages.ts'
import type { LoginThrottle } from './login-throttle.ts'
import type { UserDirectory } from './users.ts'

export interface LocalProviderOptions {
  readonly issuer: string
  readonly mount: string
  readonly clientId: string
  /** The web console, which is a client like the command line. */
  readonly console: { readonly clientId: string; readonly redirectUri: string }
  readonly adminGroup: string
  readonly users: UserDirectory
  readonly keys: IssuerKeys
  readonly storage: LoginStorage
  readonly throttle: LoginThrottle
  readonly log: Log
}

/** Browsers share cookies between the ports of a host, so two servers on one host need different names. */
const cookieName = (name: string, issuer: string): string => {
  const { port } = new URL(issuer)
  return port === '' ? name : `${name}_${port}`
}
const scopes = 'openid email groups offline_access'
const minutes = 60
const days = 24 * 3_600

export function createLocalProvider(options: LocalProviderOptions): Provider {
  const { issuer, mount, throttle, log } = options
  const provider = new Provider(issuer, configuration(options))
  // Trusts the forwarded headers, which issuer.ts overrides.
  provider.proxy = true
  provider.on('server_error', (_ctx, error) => log.error('the built-in identity provider failed', {}, error))
  const events: NodeJS.EventEmitter = provider
  events.on('error', (error) => log.error('the built-in identity provider failed', {}, error))
  provider.use(async (ctx, next) => {
    ctx.set(pageHeaders)
    // oidc-provider adds the hash of the script of its self-submitting page to this list.
    ctx.set('content-security-policy', `${pageHeaders['content-security-policy']}; script-src 'self'`)
    if (ctx.method === 'GET' && ctx.path === '/device' && ctx.query.user_code !== undefined) {
      // A link with a code only fills in the form, and the user submits it.
      ctx.state.code = String(ctx.query.user_code).slice(0, 32)
      ctx.query = {}
    }
    const goesOn = ctx.method === 'POST' ? ctx.path === '/device' : ctx.path.startsWith('/device/')
    if (goesOn && ctx.cookies.get(cookieName('svc3_session', issuer)) === undefined) {
      // Without this check oidc-provider throws, because it finds no session.
      ctx.status = 400
      return show(ctx, messagePage(mount, 'Login expired', 'This login has expired.', 'Run svc3 login --device again.'))
    }
    const takesCode = ctx.method === 'POST' && ctx.path === '/device'
    const waitSeconds = takesCode ? await throttle.beginCode(ctx.ip) : 0
    if (waitSeconds > 0) {
      log.warn('login refused: too many wrong codes', { remote: ctx.ip, delayMs: waitSeconds * 1_000 })
      ctx.status = 429
      ctx.set('retry-after', String(waitSeconds))
      return show(ctx, messagePage(mount, 'Too many wrong codes', `Try again in ${waitSeconds} s.`))
    }
    await next()
    if (takesCode && ctx.state.isWrongCode !== true) await throttle.codeSucceeded(ctx.ip)
    if (ctx.status === 404 && !ctx.body) {
      ctx.status = 404
      show(ctx, messagePage(mount, 'Page not found', 'Check the address.', 'To log in, run svc3 login.'))
    }
  })
  return provider
}

interface PageContext {
  type: string
  body: unknown
  set(headers: Record<string, string>): void
}
function show(ctx: PageContext, page: string): void {
  ctx.type = 'html'
  ctx.set(pageHeaders)
  ctx.body = page
}

function configuration(options: LocalProviderOptions): Configuration {
  const { issuer, clientId, console, keys, storage, mount } = options
  return {
    adapter: (model: string) => createLoginAdapter(model, storage),
    jwks: { keys: [keys.signing as { kty: 'EC' }] },
    cookies: {
      keys: [...keys.cookies],
      names: {
        session: cookieName('svc3_session', issuer),
        interaction: cookieName('svc3_login', issuer),
        resume: cookieName('svc3_resume', issuer),
      },
    },
    clients: [
      {
        client_id: clientId,
        client_name: 'the svc3 command line',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        // Any port of the loopback address is accepted, because the command line listens on a free one.
        redirect_uris: ['http://127.0.0.1/callback'],
        response_types: ['code'],
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        id_token_signed_response_alg: 'ES256',
        scope: scopes,
      },
      {
        client_id: console.clientId,
        client_name: 'the svc3 console',
        application_type: 'web',
        token_endpoint_auth_method: 'none',
        redirect_uris: [console.redirectUri],
        response_types: ['code'],
        grant_types: ['authorization_code', 'refresh_token'],
        id_token_signed_response_alg: 'ES256',
        scope: scopes,
      },
    ],
    clientBasedCORS: () => false,
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    responseTypes: ['code'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    // Puts email and groups into the ID token, where the service reads them.
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    findAccount: (_ctx, accountId) => accountOf(accountId, options),
    interactions: { url: (_ctx, { uid }) => `${mount}/login/${uid}`, policy: policy() },
    loadExistingGrant: ownGrant,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 5 * minutes,
      AuthorizationCode: 1 * minutes,
      DeviceCode: 10 * minutes,
      Grant: 30 * days,
      IdToken: 5 * minutes,
      Interaction: 10 * minutes,
      RefreshToken: 14 * days,
      // Long enough for one login. The next one requires the password, so that another user can log in.
      Session: 10 * minutes,
    },
    renderError: (ctx, out) => show(ctx, messagePage(mount, 'Login failed', explained(out), 'Run svc3 login again.')),
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      deviceFlow: deviceFlow(mount),
    },
  }
}

const explained = (out: { error: string; error_description?: string | undefined }): string =>
  out.error === 'server_error' ? 'The server failed to handle the request.' : (out.error_description ?? out.error)

function accountOf(accountId: string, { users, adminGroup }: LocalProviderOptions) {
  const user = users.byAccountId(accountId)
  if (!user) return undefined
  const { email, admin } = user
  const claims = { sub: accountId, email, email_verified: true, groups: admin ? [adminGroup] : [] }
  return { accountId, claims: () => claims }
}

/** Prompts for a login and never for consent, also if the user of a session was deleted or has a new password. */
function policy(): interactionPolicy.DefaultPolicy {
  const { Check, base } = interactionPolicy
  const when = (isWanted: boolean) => (isWanted ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT)
  const prompts = base()
  prompts.remove('consent')
  const { checks } = prompts.get('login') ?? {}
  checks?.add(
    new Check('account_gone', 'the user of this session no longer exists', 'login_required', ({ oidc }) =>
      when(oidc.session?.accountId !== undefined && !oidc.entities.Account),
    ),
  )
  // Devices cannot request a login (`prompt`) as browser clients can, so every device code requires the password.
  checks?.add(
    new Check('device', 'a device is logged in with the password', 'login_required', ({ oidc }) =>
      when(oidc.route === 'code_verification'),
    ),
  )
  return prompts
}

/** Grants all scopes, because all clients are our own. */
async function ownGrant({ oidc }: KoaContextWithOIDC) {
  const { client, session, provider } = oidc
  const accountId = session?.accountId
  if (!client || accountId === undefined) return undefined
  const grant = new provider.Grant({ accountId, clientId: client.clientId })
  grant.addOIDCScope(scopes)
  await grant.save()
  return grant
}

const codeProblems: Readonly<Record<string, string>> = {
  NotFoundError: 'Code not found. Check the code shown on the device.',
  NoCodeError: 'Enter the code.',
  ExpiredError: 'This code has expired. Run svc3 login --device again.',
  AlreadyUsedError: 'This code was already used. Run svc3 login --device again.',
  AbortedError: 'Cancelled. The device was not logged in.',
}

function deviceFlow(mount: string): NonNullable<Configuration['features']>['deviceFlow'] {
  const action = `${mount}/device`
  const secretOf = (ctx: KoaContextWithOIDC): string =>
    String((ctx.oidc.session as { state?: { secret?: string } }).state?.secret)
  return {
    enabled: true,
    charset: 'base-20',
    mask: '****-****',
    deviceInfo: (ctx) => ({ ip: ctx.ip, program: ctx.get('user-agent').slice(0, 200) }),
    userCodeInputSource(ctx, _form, _out, error) {
      ctx.state.isWrongCode = error?.name === 'NotFoundError'
      const problem = error ? (codeProblems[error.name] ?? 'Something went wrong. Enter the code again.') : undefined
      const code =
        typeof ctx.state.code === 'string' ? ctx.state.code : ((error as { userCode?: string })?.userCode ?? '')
      show(ctx, deviceCodePage({ mount, action, secret: secretOf(ctx), code, problem }))
    },
    userCodeConfirmSource(ctx, _form, _client, info, userCode) {
      const device = { ip: String(info.ip), program: String(info.program) }
      show(ctx, deviceConfirmPage({ mount, action, secret: secretOf(ctx), code: userCode, device }))
    },
    successSource(ctx) {
      show(ctx, messagePage(mount, 'Device logged in', 'You can close this window.'))
    },
  }
}
