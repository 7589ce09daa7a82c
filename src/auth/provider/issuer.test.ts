// The built-in provider over HTTP: PKCE, redirects, one-time codes, rotation of refresh tokens, and what is in the store.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { decodeJwt } from 'jose'
import { expireRecords } from '../../controllers/expire-records.ts'
import { createLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import { makeKeyring } from '../keyring.ts'
import { Secrets } from '../secrets.ts'
import { LocalIssuer } from './issuer.ts'
import { loadIssuerKeys } from './issuer-keys.ts'
import { createLoginThrottle } from './login-throttle.ts'
import { UserDirectory } from './users.ts'

const redirectUri = 'http://127.0.0.1:54321/callback'
const password = 'correct horse'
let server: Server
let base: string
let collections: Collections
let skewMs = 0
let maxPending = 10_000
let address = '127.0.0.1'
const log: string[] = []
const clock = { now: () => new Date(Date.now() + skewMs) }

before(async () => {
  const store = openMemory()
  collections = await openCollections(store)
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const users = new UserDirectory(collections.users, secrets)
  await users.add('ada@example.com', { admin: true, password })
  const keys = await loadIssuerKeys(collections.issuerKeys, secrets, clock)
  const storage = {
    logins: collections.logins,
    secrets,
    keys,
    clock,
    get maxPending() {
      return maxPending
    },
  }
  const issuer = new LocalIssuer({
    apiUrl: () => base,
    users,
    keys,
    storage,
    throttle: createLoginThrottle({ tries: collections.loginTries, hide: keys.hide, clock }),
    log: createLog('debug', (line) => log.push(line)),
  })
  server = createServer((request, response) => {
    const from = request.headers['x-test-address']
    void issuer.handle(request, response, typeof from === 'string' ? from : address)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await collections[Symbol.asyncDispose]()
})

const verifier = randomBytes(32).toString('base64url')
const challenge = createHash('sha256').update(verifier).digest('base64url')
const authorize = (changes: Record<string, string | undefined> = {}, cookies: readonly string[] = []) => {
  const wanted = {
    client_id: 'svc3-cli',
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'openid email groups offline_access',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'a-state',
    ...changes,
  }
  const given = Object.entries(wanted).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return fetch(`${base}/oidc/auth?${new URLSearchParams(given)}`, {
    redirect: 'manual',
    headers: { cookie: cookies.join('; ') },
  })
}
const cookiesOf = (response: Response): string[] =>
  response.headers.getSetCookie().map((text) => text.split(';')[0] ?? '')

/** Submits the login form like a browser. Returns the address of the final redirect. */
async function login(given = password): Promise<URL> {
  const start = await authorize()
  const cookies = cookiesOf(start)
  const form = new URL(start.headers.get('location') ?? '', base)
  const body = new URLSearchParams({ email: 'ada@example.com', password: given })
  const options = { redirect: 'manual', headers: { cookie: cookies.join('; ') } } as const
  const answer = await fetch(form, { ...options, method: 'POST', body })
  assert.equal(answer.status, 303)
  const resumed = await fetch(new URL(answer.headers.get('location') ?? '', base), options)
  return new URL(resumed.headers.get('location') ?? '')
}

interface Tokens {
  readonly id_token: string
  readonly access_token: string
  readonly refresh_token: string
  readonly error?: string
}
async function token(fields: Record<string, string>): Promise<{ status: number; body: Tokens }> {
  const body = new URLSearchParams({ client_id: 'svc3-cli', ...fields })
  const response = await fetch(`${base}/oidc/token`, { method: 'POST', body })
  return { status: response.status, body: (await response.json()) as Tokens }
}
const exchange = (code: string, codeVerifier = verifier) =>
  token({ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: codeVerifier })
const refresh = (refreshToken: string) => token({ grant_type: 'refresh_token', refresh_token: refreshToken })

describe('built-in provider', () => {
  it('the built-in provider issues ID tokens that are valid for minutes', async () => {
    const back = await login()
    assert.equal(back.origin + back.pathname, redirectUri)
    assert.equal(back.searchParams.get('state'), 'a-state')
    const { status, body } = await exchange(back.searchParams.get('code') ?? '')
    assert.equal(status, 200)
    const claims = decodeJwt(body.id_token)
    assert.deepEqual([claims.email, claims.groups, claims.aud], ['ada@example.com', ['svc3-admins'], 'svc3-cli'])
    assert.equal(claims.iss, `${base}/oidc`)
    assert.ok(Number(claims.exp) - Number(claims.iat) <= 300)
  })

  it('the built-in provider accepts a code once, and a second use revokes the tokens of the first', async () => {
    const code = (await login()).searchParams.get('code') ?? ''
    const first = await exchange(code)
    assert.equal(first.status, 200)
    assert.equal((await exchange(code)).body.error, 'invalid_grant')
    assert.equal((await refresh(first.body.refresh_token)).body.error, 'invalid_grant')
  })

  it('the built-in provider accepts a code only with its code verifier', async () => {
    const code = (await login()).searchParams.get('code') ?? ''
    assert.equal((await exchange(code, randomBytes(32).toString('base64url'))).body.error, 'invalid_grant')
  })

  it('the built-in provider accepts a refresh token once, also of concurrent uses; the second use ends the login', async () => {
    const { body } = await exchange((await login()).searchParams.get('code') ?? '')
    const both = await Promise.all([refresh(body.refresh_token), refresh(body.refresh_token)])
    assert.equal(both.filter(({ status }) => status === 200).length, 1)
    const next = both.find(({ status }) => status === 200)?.body.refresh_token ?? ''
    assert.notEqual(next, body.refresh_token)
    assert.equal((await refresh(body.refresh_token)).status, 400)
    assert.equal((await refresh(next)).status, 400)
  })

  it('the built-in provider refuses other redirect addresses, and requests without PKCE', async () => {
    for (const redirect of [
      'https://evil.example/callback',
      'http://127.0.0.1.evil.example/callback',
      'http://127.0.0.1:1/elsewhere',
      'http://localhost:1/callback',
    ]) {
      const answer = await authorize({ redirect_uri: redirect })
      assert.equal(answer.status, 400, redirect)
      assert.equal(answer.headers.get('location'), null)
    }
    for (const changes of [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { response_type: 'id_token', nonce: 'n' },
      { response_type: 'token' },
    ]) {
      const answer = await authorize(changes)
      const location = answer.headers.get('location') ?? ''
      assert.ok(answer.status === 400 || location.includes('error='), JSON.stringify(changes) + location)
      assert.ok(!location.includes('code=') && !location.includes('/login/'), location)
    }
    const unknown = await authorize({ client_id: '<script>alert(1)</script>' })
    assert.equal(unknown.status, 400)
    const page = await unknown.text()
    assert.ok(!page.includes('<script>'), page)
    assert.match(unknown.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  })

  it('the built-in provider builds its addresses from its issuer and ignores forwarded headers', async () => {
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-for': '9.9.9.9' }
    const response = await fetch(`${base}/oidc/device/auth`, {
      method: 'POST',
      headers,
      body: new URLSearchParams({ client_id: 'svc3-cli', scope: 'openid' }),
    })
    const body = (await response.json()) as { verification_uri: string }
    assert.equal(body.verification_uri, `${base}/oidc/device`)
    const about = await (await fetch(`${base}/oidc/.well-known/openid-configuration`, { headers })).text()
    assert.ok(!about.includes('evil'))
  })

  it('the built-in provider refuses malformed requests without an internal error', async () => {
    for (const [method, url] of [
      ['GET', '/oidc/'],
      ['GET', '/oidc/nothing'],
      ['GET', '/oidc/login/x'],
      ['POST', '/oidc/login/x'],
      ['GET', '/oidc/auth/x'],
      ['GET', '/oidc/device/x'],
      ['POST', '/oidc/device'],
      ['POST', '/oidc/token'],
      ['GET', '/oidc/%00'],
      ['GET', '/oidc/login/%ff'],
      ['GET', '/oidc/session/end'],
      ['GET', '/oidc/auth?client_id=svc3-cli&client_id=x'],
    ] as const) {
      const { status } = await fetch(base + url, {
        method,
        redirect: 'manual',
        ...(method === 'POST' && { body: 'a=b' }),
      })
      assert.ok(status >= 400 && status < 500, `${method} ${url}: ${status}\n${log.at(-1)}`)
    }
    const long = new URLSearchParams({ email: 'x'.repeat(100_000), password: 'y' })
    const start = await authorize()
    const headers = { cookie: cookiesOf(start).join('; ') }
    const form = new URL(start.headers.get('location') ?? '', base)
    assert.equal((await fetch(form, { method: 'POST', headers, body: long })).status, 400)
    assert.deepEqual(
      log.filter((line) => line.includes('"level":"error"')),
      [],
    )
  })

  it('the built-in provider requires the password if the client requests a login, despite a session', async () => {
    const start = await authorize()
    const headers = { cookie: cookiesOf(start).join('; ') }
    const body = new URLSearchParams({ email: 'ada@example.com', password })
    const form = new URL(start.headers.get('location') ?? '', base)
    const answer = await fetch(form, { method: 'POST', body, headers, redirect: 'manual' })
    const resumed = await fetch(new URL(answer.headers.get('location') ?? '', base), { headers, redirect: 'manual' })
    const remembered = cookiesOf(resumed)
    const without = (await authorize({}, remembered)).headers.get('location') ?? ''
    assert.match(without, /[?&]code=/)
    const asked = (await authorize({ prompt: 'login' }, remembered)).headers.get('location') ?? ''
    assert.match(asked, /\/oidc\/login\//)
  })

  it('the built-in provider refuses excess password checks immediately, and accepts a right one soon after', async () => {
    const start = await authorize()
    const cookie = cookiesOf(start).join('; ')
    const form = new URL(start.headers.get('location') ?? '', base)
    const attempt = (email: string, from: string) => {
      const body = new URLSearchParams({ email, password: 'wrong wrong' })
      return fetch(form, { method: 'POST', headers: { cookie, 'x-test-address': from }, body, redirect: 'manual' })
    }
    const many = await Promise.all(
      Array.from({ length: 60 }, (_, index) => attempt(`u${index}@example.com`, `10.0.0.${index % 5}`)),
    )
    const busy = many.filter(({ status }) => status === 429)
    assert.ok(busy.length >= 20, String(busy.length))
    assert.ok(many.some(({ status }) => status === 401))
    for (const answer of busy) assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    const pages = await Promise.all(busy.map((answer) => answer.text()))
    assert.ok(pages.some((page) => page.includes('The server is busy. Try again in a few seconds.')))
    await login()
  })

  it('the built-in provider delays an address that guesses device codes', async () => {
    address = '10.1.0.1'
    const page = await fetch(`${base}/oidc/device`)
    const headers = { cookie: cookiesOf(page).join('; ') }
    // Every page has another secret.
    let text = await page.text()
    const guess = async (code: string) => {
      const xsrf = /name="xsrf" value="([^"]+)"/.exec(text)?.[1] ?? ''
      const body = new URLSearchParams({ xsrf, user_code: code })
      const answer = await fetch(`${base}/oidc/device`, { method: 'POST', headers, body })
      text = await answer.text()
      return answer.status
    }
    for (let index = 0; index < 20; index++) {
      assert.notEqual(await guess(`BBBB-BBB${'BCDFGHJKLM'[index % 10]}`), 429)
      assert.match(text, /Code not found/)
    }
    // From now on each attempt waits twice as long as the previous one, even if an attempt takes a second.
    let last = text
    let status = await guess('BBBB-BBBB')
    for (let more = 0; status !== 429 && more < 5; more++) {
      last = text
      status = await guess('BBBB-BBBB')
    }
    assert.equal(status, 429)
    assert.match(text, /Too many wrong codes/)
    address = '10.1.0.2'
    text = last
    assert.notEqual(await guess('BBBB-BBBB'), 429)
    assert.match(text, /Code not found/)
    address = '127.0.0.1'
  })

  it('the built-in provider limits logins in progress, without affecting existing ones', async () => {
    const { body } = await exchange((await login()).searchParams.get('code') ?? '')
    maxPending = collections.logins.list().filter(({ value }) => value.model !== 'RefreshToken').length
    const device = () =>
      fetch(`${base}/oidc/device/auth`, {
        method: 'POST',
        body: new URLSearchParams({ client_id: 'svc3-cli', scope: 'openid' }),
      })
    let answer = await device()
    for (let index = 0; answer.status === 200 && index < 100; index++) answer = await device()
    assert.equal(answer.status, 429)
    assert.equal(((await answer.json()) as { error: string }).error, 'temporarily_unavailable')
    const { status, headers } = await authorize()
    assert.ok(status === 429 || headers.get('location')?.includes('error=temporarily_unavailable'), String(status))
    assert.deepEqual(
      log.filter((line) => line.includes('"level":"error"')),
      [],
    )
    maxPending = 10_000
    assert.equal((await device()).status, 200)
    assert.equal((await refresh(body.refresh_token)).status, 200)
  })

  it('the built-in provider stores no usable secret in plain text, and expired records are deleted', async () => {
    const code = (await login()).searchParams.get('code') ?? ''
    const { body } = await exchange(code)
    const kept = JSON.stringify(collections.logins.list())
    assert.ok(collections.logins.list().some(({ value }) => value.model === 'RefreshToken'))
    for (const secret of [code, body.refresh_token, body.access_token, 'ada@example.com', password])
      assert.ok(!kept.includes(secret))
    // Codes of earlier tests may expire in between.
    const lasting = collections.logins.list().filter(({ value }) => Date.parse(value.expiresAt) > Date.now() + 120_000)
    await sweep()
    const left = new Set(collections.logins.list().map(({ key }) => key))
    assert.ok(lasting.length > 0 && lasting.every(({ key }) => left.has(key)))
    skewMs = 60 * 24 * 3_600_000
    assert.equal((await refresh(body.refresh_token)).status, 400)
    await sweep()
    assert.equal(collections.logins.list().length, 0)
    skewMs = 0
  })
})

/** One run of the controller. */
async function sweep(): Promise<void> {
  const loop = expireRecords({ collections, clock, log: createLog('silent') } as Parameters<typeof expireRecords>[0])
  const idle = async (): Promise<void> => {
    const rev = collections.logins.view.rev
    await new Promise((resolve) => setImmediate(resolve))
    if (rev !== collections.logins.view.rev) await idle()
  }
  await idle()
  await loop.stop()
}
