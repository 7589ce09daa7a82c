// Logins to the console through an identity provider, the built-in and an external one, and their failures.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Browser, openBrowser } from '../../../test/support/processes/browser.ts'
import { type Answer, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { passForeignForms, startForeignProvider } from '../../../test/support/stand-ins/foreign-provider.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { makeKeyring } from '../../auth/keyring.ts'
import { createIdentity } from '../../auth/login/oidc.ts'
import { remoteKeys } from '../../auth/login/provider-keys.ts'
import { createUsedTokens } from '../../auth/login/used-tokens.ts'
import { LocalIssuer, localAdminGroup, localClientId, localConsoleClientId } from '../../auth/provider/issuer.ts'
import { loadIssuerKeys } from '../../auth/provider/issuer-keys.ts'
import { createLoginThrottle } from '../../auth/provider/login-throttle.ts'
import { UserDirectory } from '../../auth/provider/users.ts'
import { Secrets } from '../../auth/secrets.ts'
import { systemClock } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import { pathInConsole } from './console-login.ts'

const own = 'http://127.0.0.1:1'
const password = 'correct horse'
let users: UserDirectory
let logins: Collections['logins']
let service: TestService
let browser: Browser

async function start(pathPrefix = ''): Promise<void> {
  // oidc-provider signs by the system's clock; sessions and stored state use this one.
  const clock = { now: () => new Date(Date.now() + skewMs) }
  const collections = await openCollections(openMemory())
  logins = collections.logins
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  users = new UserDirectory(collections.users, secrets)
  await users.add('ada@example.com', { admin: true, password })
  const keys = await loadIssuerKeys(collections.issuerKeys, secrets, clock)
  const storage = { logins: collections.logins, secrets, keys, clock }
  const localIssuer = new LocalIssuer({
    apiUrl: () => own,
    pathPrefix,
    users,
    keys,
    storage,
    throttle: createLoginThrottle({ tries: collections.loginTries, hide: keys.hide, clock }),
    log: createLog('silent'),
  })
  const identity = createIdentity({
    issuer: () => localIssuer.issuer,
    clientId: localClientId,
    otherClientIds: [localConsoleClientId],
    emailClaim: 'email',
    groupsClaim: 'groups',
    adminGroups: [localAdminGroup],
    keys: localIssuer.keys,
    clock: systemClock,
    used: createUsedTokens(collections.used),
    uidOf: (subject) => users.byAccountId(subject) && subject,
  })
  service = await startService({ localIssuer, identity, settings: { console: { pathPrefix } } })
  service.clock.now = clock.now
  browser = openBrowser(service, own)
}
let skewMs = 0

const html = { accept: 'text/html', 'sec-fetch-site': 'none' }
const locationOf = (answer: Answer): URL => new URL(String(answer.headers.location), own)
const follow = async (answer: Answer): Promise<Answer> => {
  const { pathname, search } = locationOf(answer)
  return browser.call('GET', pathname + search, { headers: html })
}

/** Logs in up to the redirect to the callback. */
async function passProvider(begin: string, given = password): Promise<Answer> {
  const form = await follow(await follow(await browser.call('GET', begin, { headers: html })))
  const [, action = ''] = /<form[^>]*action="([^"]+)"/.exec(form.text) ?? []
  assert.match(action, /\/oidc\/login\//)
  const sent = await browser.call('POST', action, {
    body: new URLSearchParams({ email: 'ada@example.com', password: given }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  return sent.status === 303 ? follow(sent) : sent
}

const session = async () => (await browser.call('GET', '/console/session')).body

describe('a login at the built-in provider', () => {
  beforeEach(() => {
    skewMs = 0
  })
  afterEach(async () => {
    await service[Symbol.asyncDispose]()
  })

  it('a login at the built-in provider returns to the first page, with a session and no secret in the address', async () => {
    await start()
    assert.deepEqual((await session()).login, { provider: true, builtIn: true })
    const back = await passProvider('/console/login?to=vms%2Fsvc-default%2Fdemo%3Ftab%3Dlog')
    assert.match(String(back.headers.location), /^http:\/\/127\.0\.0\.1:1\/console\/callback\?code=/)
    const done = await follow(back)
    assert.deepEqual([done.status, done.headers.location], [302, '/console/vms/svc-default/demo?tab=log'])
    assert.match(String(done.headers['set-cookie']), /svc3_console_1=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict/)
    assert.ok(!browser.cookies.has('svc3_console_login_1'))
    const { user, renewable } = await session()
    assert.deepEqual([user, renewable], [{ kind: 'user', name: 'ada@example.com', admin: true }, true])
    assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 200)
    // A code is valid once.
    browser.cookies.delete('svc3_console_1')
    assert.deepEqual((await follow(back)).headers.location, '/console/')
    assert.equal((await session()).user, null)
  })

  it('a login at the built-in provider is renewed silently by any tab, and once', async () => {
    await start()
    await follow(await passProvider('/console/login'))
    const before = Date.parse((await session()).expiresAt)
    skewMs += 57 * 60_000
    const tabs = await Promise.all([session(), session(), session()])
    for (const { user, expiresAt } of tabs) {
      assert.equal(user.name, 'ada@example.com')
      assert.ok(Date.parse(expiresAt) >= before + 50 * 60_000)
    }
    // Also after it expired in the night.
    skewMs += 9 * 3_600_000
    assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 401)
    assert.equal((await session()).user.name, 'ada@example.com')
    assert.equal((await browser.call('GET', '/api/v1/namespaces')).status, 200)
    // Renewal has a limit.
    skewMs += 8 * 24 * 3_600_000
    assert.equal((await session()).user, null)
  })

  it('a login at the built-in provider ends when the user is deleted, also at a renewal', async () => {
    await start()
    await follow(await passProvider('/console/login'))
    await users.remove('ada@example.com')
    skewMs += 58 * 60_000
    assert.equal((await session()).user, null)
  })

  it('a renewed login has the present attributes of the user', async () => {
    await start()
    await follow(await passProvider('/console/login'))
    const [entry] = service.services.collections.browserSessions.list()
    assert.ok(entry)
    skewMs += 58 * 60_000
    const { browserSessions } = service.services
    const id = browser.cookies.get('svc3_console_1') ?? ''
    const renewed = await browserSessions.renewed(id, async (refreshToken) => {
      assert.ok(refreshToken.length > 20)
      return { user: { kind: 'user', name: 'ada@example.com', admin: false }, refreshToken: 'next' }
    })
    assert.equal((renewed?.principal as { admin?: boolean } | undefined)?.admin, false)
    // A valid login continues while the provider is down.
    skewMs += 57 * 60_000
    await assert.rejects(
      browserSessions.renewed(id, async () => {
        throw new Error('down')
      }),
      /down/,
    )
    assert.ok(browserSessions.find(id))
    // A refusal ends it, and so does another user in the answer.
    const other = { user: { kind: 'user', name: 'eve@example.com', admin: true }, refreshToken: 'x' } as const
    assert.equal(await browserSessions.renewed(id, async () => other), undefined)
    assert.equal(service.services.collections.browserSessions.list().length, 0)
  })

  it('logging out revokes the refresh token at the built-in provider', async () => {
    await start()
    await follow(await passProvider('/console/login'))
    const kept = () => logins.list().filter(({ value }) => value.model === 'RefreshToken').length
    assert.equal(kept(), 1)
    await browser.call('DELETE', '/console/session')
    assert.equal((await session()).user, null)
    await eventually(() => assert.equal(kept(), 0))
  })

  const wrong: Readonly<Record<string, (back: URL) => string>> = {
    'another state': (back) => back.href.replace(/state=[^&]+/, 'state=another'),
    'no state': (back) => back.href.replace(/state=[^&]+/, ''),
    'no code': (back) => back.href.replace(/code=[^&]+/, ''),
    'another code': (back) => back.href.replace(/code=[^&]+/, 'code=another'),
    'a refusal': (back) => `${back.href.replace(/code=[^&]+/, '')}&error=access_denied&error_description=<b>x`,
  }
  it('a login with another state is refused, with a message that is shown once', async () => {
    await start()
    for (const [name, change] of Object.entries(wrong)) {
      const back = locationOf(await passProvider('/console/login'))
      const { pathname, search } = new URL(change(back))
      const answer = await browser.call('GET', pathname + search, { headers: html })
      assert.deepEqual([name, answer.status, answer.headers.location], [name, 302, '/console/'])
      const { user, problem } = await session()
      assert.equal(user, null, name)
      assert.match(problem, /\w+/)
      assert.doesNotMatch(problem, /<b>/)
      assert.equal((await session()).problem, undefined)
    }
    // In another browser.
    const { pathname, search } = locationOf(await passProvider('/console/login'))
    browser = openBrowser(service, own)
    await browser.call('GET', pathname + search, { headers: html })
    assert.match((await session()).problem, /another browser/)
  })

  it('a login at the built-in provider starts at the address of the callback', async () => {
    await start()
    const elsewhere = openBrowser(service, 'http://localhost:1')
    const answer = await elsewhere.call('GET', '/console/login?to=images', { headers: html })
    assert.equal(answer.headers.location, 'http://127.0.0.1:1/console/login?here=1&to=images')
    const again = await elsewhere.call('GET', '/console/login?here=1', { headers: html })
    assert.match(String(again.headers.location), /\/oidc\/auth/)
  })

  it('a login at the built-in provider works under a prefix', async () => {
    await start('/tools')
    const back = await passProvider('/tools/console/login?to=images')
    assert.match(String(back.headers.location), /^http:\/\/127\.0\.0\.1:1\/tools\/console\/callback\?code=/)
    const done = await follow(back)
    assert.equal(done.headers.location, '/tools/console/images')
    assert.match(String(done.headers['set-cookie']), /svc3_console_1=[\w-]{43}; Path=\/tools\//)
    assert.equal((await session()).user.name, 'ada@example.com')
  })
})

describe('a login at an organisation’s own provider', () => {
  it('a login at an organisation’s own provider makes a session, which is renewed there and ends when the provider is down for too long', async () => {
    await using provider = await startForeignProvider()
    const { issuer, clientId } = provider
    skewMs = 0
    const identity = createIdentity({
      issuer: () => issuer,
      clientId,
      emailClaim: 'email',
      groupsClaim: 'groups',
      adminGroups: ['ops'],
      keys: remoteKeys(issuer),
      clock: systemClock,
      used: createUsedTokens((await openCollections(openMemory())).used),
    })
    await using made = await startService({ identity })
    service = made
    service.clock.now = () => new Date(Date.now() + skewMs)
    browser = openBrowser(service, own)
    provider.groupsOf.set('ada', ['ops'])
    const begun = await browser.call('GET', '/console/login?to=nodes', { headers: html })
    const back = await passForeignForms(String(begun.headers.location), 'ada')
    const done = await browser.call('GET', back.pathname + back.search, { headers: html })
    assert.equal(done.headers.location, '/console/nodes')
    const first = await session()
    assert.deepEqual(first.user, { kind: 'user', name: 'ada@corp.example', admin: true })
    assert.deepEqual([first.renewable, first.login], [true, { provider: true, builtIn: false }])
    // The renewed session has the changes.
    provider.groupsOf.set('ada', [])
    skewMs += 58 * 60_000
    assert.equal((await session()).user.admin, false)
    await provider.stop()
    skewMs += 58 * 60_000
    assert.equal((await session()).user.name, 'ada@corp.example')
    skewMs += 10 * 60_000
    assert.equal((await session()).user, null)
    await provider.start()
    assert.equal((await session()).user.name, 'ada@corp.example')
  })

  it('a login at an organisation’s own provider says that the provider does not answer', async () => {
    const identity = { issuer: 'http://127.0.0.1:9', clientId: 'x', verify: () => Promise.reject(new Error('never')) }
    await using made = await startService({ identity })
    service = made
    browser = openBrowser(service, own)
    const begun = await browser.call('GET', '/console/login', { headers: html })
    assert.equal(begun.headers.location, '/console/')
    assert.match((await session()).problem, /is not responding/)
  })
})

describe('the page after a login', () => {
  it('a login always ends on a page of the console', () => {
    assert.equal(pathInConsole('vms/svc-default/demo?x=1'), 'vms/svc-default/demo?x=1')
    for (const to of [
      '//evil.example',
      'https://evil.example',
      '/oidc/x',
      '../api',
      '..%2f',
      '\\\\evil',
      7,
      undefined,
      'javascript:x',
    ])
      assert.doesNotMatch(`/console/${pathInConsole(to)}`, /evil|^\/console\/\/|oidc|api$|javascript|\\/)
  })
})
