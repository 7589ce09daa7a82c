// Sessions of browsers: the cookie authenticates the caller in every operation, and only from the console's own pages.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type Browser, logIn, openBrowser, ownOrigin } from '../../../test/support/processes/browser.ts'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { allOperations } from '../../api/index.ts'
import { loadSigningKeys } from '../../auth/signing-keys.ts'

let service: TestService
let browser: Browser

beforeEach(async () => {
  service = await startService({ settings: { limits: { anonymousPerMinute: 1_000_000 } } })
  browser = openBrowser(service)
})
afterEach(() => service[Symbol.asyncDispose]())

const session = '/console/session'
const namespaces = '/api/v1/namespaces'
const hour = 3_600_000

describe('a session', () => {
  it('a session begins with a token, which is not stored, and authenticates API requests', async () => {
    const before = await browser.call('GET', session)
    assert.deepEqual(before.body, {
      user: null,
      expiresAt: null,
      renewable: false,
      login: { provider: true, builtIn: false },
    })
    assert.equal((await browser.call('GET', namespaces)).status, 401)
    const made = await browser.call('POST', session, { body: { token: ` ${service.adminToken}\n` } })
    assert.equal(made.status, 201)
    assert.deepEqual(made.body.user, { kind: 'user', name: 'admin@example.com', admin: true })
    assert.match(String(made.headers['set-cookie']), /^svc3_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    assert.doesNotMatch(made.text, /ey[A-Z]/)
    const created = await browser.call('POST', namespaces, { body: { name: 'svc-made' } })
    assert.equal(created.status, 201, created.text)
    assert.equal((await browser.call('GET', session)).body.user.name, 'admin@example.com')
    const dump = JSON.stringify(await service.services.store.list('/browser-sessions/'))
    assert.ok(!dump.includes(service.adminToken) && !dump.includes([...browser.cookies.values()][0] ?? '?'))
    assert.ok(service.logLines.every((line) => !line.includes(service.adminToken)))
  })

  it('a session needs https if the service has it', async () => {
    service.apiUrl = 'https://svc3.example.com'
    const secure = openBrowser(service, 'https://svc3.example.com')
    const { headers, status } = await secure.call('POST', session, { body: { token: service.devToken } })
    assert.equal(status, 201)
    assert.match(String(headers['set-cookie']), /^__Host-svc3_console=.*; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    assert.equal((await secure.call('GET', session)).body.user.name, 'dev@example.com')
  })

  it('a session does not begin with an invalid token or one of a machine', async () => {
    const agent = await service.tokenFor({ kind: 'agent', name: 'x', uid: 'x' })
    for (const token of ['nonsense', `${service.adminToken}x`, agent]) {
      const { status, body, headers } = await browser.call('POST', session, { body: { token } })
      assert.deepEqual([status, body.reason, headers['set-cookie']], [401, 'Unauthorized', undefined])
      assert.ok(body.hint)
    }
    for (const body of [{}, [], 'x', { token: 7 }])
      assert.equal(
        (
          await browser.call('POST', session, {
            body: JSON.stringify(body) as never,
            headers: { 'content-type': 'application/json' },
          })
        ).status,
        400,
      )
  })

  it('a session has the rights of its caller, and no more', async () => {
    await logIn(browser, service.devToken)
    assert.equal((await browser.call('GET', `${namespaces}/svc-default/vms`)).status, 200)
    assert.equal((await browser.call('POST', namespaces, { body: { name: 'svc-made' } })).status, 403)
    assert.equal((await browser.call('GET', `${namespaces}/svc-other/vms`)).status, 403)
  })

  it('a session ends with its token', async () => {
    await logIn(browser, service.devToken)
    service.clock.nowMs += hour - 5_000
    assert.equal((await browser.call('GET', namespaces)).status, 200)
    service.clock.nowMs += 10_000
    assert.equal((await browser.call('GET', namespaces)).status, 401)
    assert.equal((await browser.call('GET', session)).body.user, null)
  })

  it('a session ends with the account', async () => {
    const robot = `${namespaces}/svc-default/serviceaccounts/robot`
    await service.call('POST', robot)
    const { body } = await service.call('POST', `${robot}/token`)
    await logIn(browser, body.token)
    assert.deepEqual((await browser.call('GET', session)).body.user, {
      kind: 'serviceaccount',
      name: 'serviceaccount:svc-default:robot',
      admin: false,
      namespace: 'svc-default',
    })
    await service.call('DELETE', robot)
    assert.equal((await browser.call('GET', `${namespaces}/svc-default/vms`)).status, 401)
  })

  it('a session ends for every tab when one logs out, and for every browser when asked to', async () => {
    const others = [openBrowser(service), openBrowser(service), openBrowser(service)]
    await logIn(browser, service.adminToken)
    for (const other of others.slice(0, 2)) await logIn(other, service.adminToken)
    const somebodyElse = others[2] as Browser
    await logIn(somebodyElse, service.devToken)
    const tab = openBrowser(service)
    for (const [name, value] of browser.cookies) tab.cookies.set(name, value)
    const out = await tab.call('DELETE', session)
    assert.equal(out.status, 204)
    assert.match(String(out.headers['set-cookie']), /^svc3_console=;.*Max-Age=0/)
    assert.equal((await browser.call('GET', namespaces)).status, 401)
    assert.equal((await others[0]?.call('GET', namespaces))?.status, 200)
    await others[0]?.call('DELETE', `${session}?everywhere=true`)
    assert.equal((await others[1]?.call('GET', namespaces))?.status, 401)
    assert.equal((await somebodyElse.call('GET', namespaces)).status, 200)
  })

  it('a caller has a limited number of sessions, and a new one ends the oldest', async () => {
    await logIn(browser, service.adminToken)
    service.clock.nowMs += 1_000
    for (let count = 0; count < 50; count++) await logIn(openBrowser(service), service.adminToken)
    assert.equal(service.services.collections.browserSessions.list().length, 50)
    assert.equal((await browser.call('GET', namespaces)).status, 401)
  })

  it('a session with an altered record is invalid', async () => {
    await logIn(browser, service.devToken)
    const { browserSessions } = service.services.collections
    const [entry] = browserSessions.list()
    assert.ok(entry)
    const principal = { kind: 'user', name: 'dev@example.com', admin: true } as const
    await browserSessions.update(entry, { ...entry.value, principal })
    assert.equal((await browser.call('GET', namespaces)).status, 401)
  })

  it('a session begins with a ticket once', async () => {
    const ada = { kind: 'user', name: 'ada@example.com', admin: true } as const
    const { ticket } = await service.services.browserSessions.issueTicket(ada)
    assert.equal((await browser.call('POST', session, { body: { ticket } })).status, 201)
    assert.equal((await browser.call('GET', session)).body.user.name, 'ada@example.com')
    const again = await openBrowser(service).call('POST', session, { body: { ticket } })
    assert.equal(again.status, 401)
    assert.match(again.body.hint, /svc3 console/)
  })

  it('a session begins with the ticket of a token, within 5 minutes, and ends with the token', async () => {
    const ticketFor = async (token: string | null) =>
      service.call('POST', '/console/ticket', { token, headers: { host: 'console.test' } })
    const { status, body } = await ticketFor(service.devToken)
    assert.equal(status, 201)
    const opened = await browser.call('POST', session, { body: { ticket: body.ticket } })
    assert.equal(opened.body.user.name, 'dev@example.com')
    assert.ok(Date.parse(opened.body.expiresAt) - service.clock.nowMs <= hour)
    const late = (await ticketFor(service.devToken)).body.ticket
    service.clock.nowMs += 300_001
    assert.equal((await openBrowser(service).call('POST', session, { body: { ticket: late } })).status, 401)
    for (const token of [null, 'nonsense']) assert.equal((await ticketFor(token)).status, 401)
    service.clock.nowMs += hour - 300_001 - 10_000
    const lastSecond = (await ticketFor(service.devToken)).body.ticket
    service.clock.nowMs += 9_500
    const tooLate = await openBrowser(service).call('POST', session, { body: { ticket: lastSecond } })
    assert.equal(tooLate.status, 401, 'less than a second is left of the token')
    const viaCookie = await browser.call('POST', '/console/ticket')
    assert.equal(viaCookie.status, 401, 'a session must not renew itself')
  })

  it('a session and a ticket end when any server revokes the signing keys, and another login works', async () => {
    const { collections, secrets, browserSessions } = service.services
    using otherServer = await loadSigningKeys(collections.signingKeys, secrets, service.clock)
    const ada = { kind: 'user', name: 'ada@example.com', admin: true } as const
    const { ticket } = await browserSessions.issueTicket(ada)
    await logIn(browser, service.adminToken)
    await otherServer.rotate()
    assert.equal((await browser.call('GET', namespaces)).status, 200, 'rotating alone ends nothing')
    await otherServer.rotate({ isRevoking: true })
    assert.equal((await browser.call('GET', namespaces)).status, 401)
    assert.equal((await browser.call('GET', session)).body.user, null)
    assert.equal((await openBrowser(service).call('POST', session, { body: { ticket } })).status, 401)
    await logIn(browser, await service.tokenFor(ada))
    assert.equal((await browser.call('GET', namespaces)).status, 200)
  })

  it('a ticket is not a session, and its record contains no secret', async () => {
    const { body } = await service.call('POST', '/console/ticket', { token: service.devToken })
    browser.cookies.set('svc3_console', body.ticket.padEnd(43, 'x'))
    assert.equal((await browser.call('GET', namespaces)).status, 401)
    assert.ok(!JSON.stringify(await service.services.store.list('/browser-sessions/')).includes(body.ticket))
  })

  it('sessions of two servers on one host have cookies of different names', async () => {
    const at = (origin: string) => openBrowser(service, origin)
    for (const [origin, name] of [
      ['http://127.0.0.1:8080', 'svc3_console_8080'],
      ['http://127.0.0.1:8081', 'svc3_console_8081'],
      ['http://[::1]:8081', 'svc3_console_8081'],
      ['http://localhost', 'svc3_console'],
    ] as const) {
      const one = at(origin)
      await logIn(one, service.devToken)
      assert.deepEqual([...one.cookies.keys()], [name])
      assert.equal((await one.call('GET', session)).body.user.name, 'dev@example.com')
    }
  })
})

describe('a request from another site', () => {
  it('a request from another site is refused in every operation, though the browser sends the cookie', async () => {
    await logIn(browser, service.adminToken)
    const { rev } = await service.services.store.list('/none/')
    for (const operation of allOperations.filter(({ allow }) => allow !== 'anyone')) {
      const url = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => operation.example.params?.[name] ?? 'x')
      const { body } = operation.example
      const answer = await browser.call(operation.method, url, {
        ...(body !== undefined && { body }),
        from: 'https://evil.example',
      })
      assert.deepEqual([operation.id, answer.status], [operation.id, 403])
      assert.match(answer.body.message, /a page of another site/)
    }
    assert.equal((await service.services.store.list('/none/')).rev, rev)
  })

  const foreign: Readonly<Record<string, Record<string, string>>> = {
    'a form of another origin on the same host': { origin: 'http://console.test:8081', 'sec-fetch-site': 'same-site' },
    'a page without an origin': { origin: 'null', 'sec-fetch-site': 'cross-site' },
    'an old browser that says no more than the origin': { origin: 'https://evil.example', 'sec-fetch-site': '' },
    'a page of another protocol on the same host': { origin: 'ftp://console.test' },
  }
  for (const [name, headers] of Object.entries(foreign)) {
    it(`a request from another site is refused: ${name}`, async () => {
      await logIn(browser, service.adminToken)
      const answer = await browser.call('POST', namespaces, { body: { name: 'svc-evil' }, headers })
      assert.equal(answer.status, 403, answer.text)
      assert.equal(service.services.collections.namespaces.get('', 'svc-evil'), undefined)
      assert.equal((await browser.call('DELETE', session, { headers })).status, 403)
      assert.equal((await browser.call('GET', session)).body.user.name, 'admin@example.com')
    })
  }

  it('a change needs the header of the console, a read does not', async () => {
    await logIn(browser, service.adminToken)
    const cookie = browser.cookieHeader()
    const plain = { cookie, host: new URL(ownOrigin).host }
    const made = await service.call('POST', namespaces, { token: null, body: { name: 'svc-evil' }, headers: plain })
    assert.equal(made.status, 403)
    assert.equal((await service.call('GET', namespaces, { token: null, headers: plain })).status, 200)
    assert.equal((await service.call('POST', session, { token: null, body: {}, headers: plain })).status, 403)
  })

  it('a request with a token is accepted from any site, and its cookie is ignored', async () => {
    await logIn(browser, service.adminToken)
    const authorization = `Bearer ${service.devToken}`
    const answer = await browser.call('POST', namespaces, { body: { name: 'svc-made' }, headers: { authorization } })
    assert.equal(answer.status, 403)
    assert.match(answer.body.hint, /administrator/)
    const bad = await browser.call('GET', namespaces, { headers: { authorization: 'Bearer nonsense' } })
    assert.equal(bad.status, 401)
  })
})
