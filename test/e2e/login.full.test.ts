// Logging in with the built-in provider: real server, real command line, real browser. By page and by device code;
// renewals; wrong passwords; users that are removed; and no secret anywhere in clear.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { type DevServer, filesWith, makeFolder, program, startDev, svc3 } from '../support/processes/dev-server.ts'
import {
  complaintsOf,
  expireStoredToken,
  fillLogin,
  launchBrowser,
  screenshot,
  setPassword,
  startLogin,
  storedLogin,
} from '../support/rigs/login.ts'
import { eventually } from '../support/tools/eventually.ts'
import { ownAddress } from '../support/tools/own-address.ts'

const password = 'canary-password-93f1'
const ada = 'ada@example.com'
let data: string
let home: string
let server: DevServer
let browser: Browser
before(async () => {
  data = await makeFolder()
  ;[server, browser] = await Promise.all([startDev(data), launchBrowser()])
  await addUser(ada)
  await setPassword(data, 'admin@localhost', `${password}-admin`)
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})
beforeEach(async () => {
  home = await makeFolder()
})
afterEach(() => fs.rm(home, { recursive: true, force: true }))

const env = () => ({ SVC3_DATA: data, XDG_CONFIG_HOME: home })
const run = (...args: string[]) => svc3(args, { env: env() })
const addUser = async (email: string) => {
  const args = ['server', 'users', 'add', email, '--password-stdin', '--data', data]
  const { code, stdout, stderr } = await svc3(args, { input: `${password}\n` })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, `User ${email} added.\n`)
}
/** Both ends of a login by the page. */
async function login(email: string, secret = password) {
  const process = await startLogin(['--no-browser'], env())
  const page = await browser.newPage()
  await page.goto(process.addresses[0] ?? '')
  await fillLogin(page, email, secret)
  await page.getByText('You can close this window').waitFor()
  await page.close()
  return process.ended
}
const tokenStatus = async (token: string): Promise<number> =>
  (await fetch(`${server.apiUrl}/api/v1/namespaces`, { headers: { authorization: `Bearer ${token}` } })).status

describe('svc3 login with the built-in provider', () => {
  it('svc3 login with the built-in provider logs in by the page, without JavaScript, and keeps the login privately', {
    timeout: 400_000,
  }, async () => {
    const process = await startLogin(['--no-browser'], env())
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 720 } })
    const page = await context.newPage()
    const complaints = complaintsOf(page)
    const answer = await page.goto(process.addresses[0] ?? '')
    assert.match(answer?.headers()['content-security-policy'] ?? '', /default-src 'none'.*frame-ancestors 'none'/)
    await screenshot(page, 'login-phone')
    await fillLogin(page, ada, password)
    await page.getByText('You are logged in. You can close this window.').waitFor()
    await screenshot(page, 'login-done')
    assert.deepEqual(complaints, [])
    await context.close()
    const { code, stdout, stderr } = await process.ended
    assert.deepEqual(
      [code, stdout],
      [0, `Logged in to ${server.apiUrl} as ${ada} (context ${new URL(server.apiUrl).host}).\n`],
      stderr,
    )

    const file = path.join(home, 'svc3', 'config.json')
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    const { token, refreshToken, tokenExpiresAt } = await storedLogin(home)
    const minutes = (Date.parse(tokenExpiresAt) - Date.now()) / 60_000
    assert.ok(minutes > 58 && minutes <= 60, tokenExpiresAt)
    for (const secret of [token, refreshToken]) assert.ok(!(stdout + stderr).includes(secret))
    assert.equal((await run('user', 'get-token')).stdout, `${token}\n`)
    assert.equal((await run('regcred', 'list')).code, 4)
    assert.equal((await run('namespace', 'list')).code, 0)
  })

  it('svc3 login with the built-in provider makes administrators of those who are', { timeout: 400_000 }, async () => {
    const { stdout } = await login('Admin@LocalHost', `${password}-admin`)
    assert.equal(
      stdout,
      `Logged in to ${server.apiUrl} as admin@localhost, administrator (context ${new URL(server.apiUrl).host}).\n`,
    )
    assert.equal((await run('regcred', 'list')).code, 0)
  })

  it('svc3 login with the built-in provider logs a device in by its code', { timeout: 400_000 }, async () => {
    const process = await startLogin(['--device'], env())
    const page = await browser.newPage({ viewport: { width: 900, height: 760 } })
    const complaints = complaintsOf(page)
    await page.goto(process.addresses[0] ?? '')
    await page.getByLabel('Code').fill('WRNG-CODE')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Code not found').waitFor()
    await screenshot(page, 'device-wrong')
    await page.getByLabel('Code').fill(process.code.toLowerCase().replace('-', ' '))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText(process.code).waitFor()
    await page.getByText('svc3-cli').waitFor()
    await screenshot(page, 'device-confirm')
    await page.getByRole('button', { name: 'Log in device' }).click()
    await fillLogin(page, ada, password)
    await page.getByText('Device logged in').waitFor()
    await screenshot(page, 'device-done')
    assert.deepEqual(complaints, [])
    await page.close()
    const { code, stdout, stderr } = await process.ended
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `Logged in to ${server.apiUrl} as ${ada} (context ${new URL(server.apiUrl).host}).\n`)
  })

  it('svc3 login with the built-in provider tells a device that was refused; the link brings its code along', {
    timeout: 400_000,
  }, async () => {
    const process = await startLogin(['--device'], env())
    const page = await browser.newPage()
    await page.goto(process.addresses[1] ?? '')
    assert.equal(await page.getByLabel('Code').inputValue(), process.code)
    await screenshot(page, 'device-code')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The device was not logged in').waitFor()
    await page.close()
    const { code, stderr } = await process.ended
    assert.equal(code, 3)
    assert.match(stderr, /Unauthorized: the login was refused\n/)
  })

  it('svc3 login with the built-in provider asks for the password each time, also in a browser that was logged in a moment ago', {
    timeout: 400_000,
  }, async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    for (let index = 0; index < 2; index++) {
      const process = await startLogin(['--no-browser'], env())
      await page.goto(process.addresses[0] ?? '')
      await fillLogin(page, ada, password)
      await page.getByText('You are logged in').waitFor()
      assert.equal((await process.ended).code, 0)
    }
    const device = await startLogin(['--device'], env())
    await page.goto(device.addresses[1] ?? '')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Log in device' }).click()
    await fillLogin(page, ada, password)
    await page.getByText('Device logged in').waitFor()
    await context.close()
    assert.equal((await device.ended).code, 0)
  })

  it('svc3 login with the built-in provider ends at Ctrl-C', async () => {
    const process = await startLogin(['--no-browser'], env())
    process.interrupt()
    assert.equal((await process.ended).code, 130)
  })
})

describe('the login page', () => {
  it('the login page shows what was typed as text, says what is wrong, and slows guessing down', {
    timeout: 400_000,
  }, async () => {
    const process = await startLogin(['--no-browser'], env())
    const page = await browser.newPage({ viewport: { width: 900, height: 700 } })
    const complaints = complaintsOf(page)
    await page.goto(process.addresses[0] ?? '')
    await screenshot(page, 'login')
    const markup = '"><img/src=x>@x.y'
    await page.locator('form').evaluate((form) => ((form as unknown as { noValidate: boolean }).noValidate = true))
    await fillLogin(page, markup, 'wrong')
    await page.getByText('Wrong email or password.').waitFor()
    assert.equal(await page.getByLabel('Email').inputValue(), markup)
    assert.equal(await page.locator('main img').count(), 0)
    const statuses: number[] = []
    // On a slow machine a wait may be over before the next try: it doubles until one is not.
    while (statuses.at(-1) !== 429 && statuses.length < 12) {
      // Waits for the new page: the previous one has the same form, and would take the input with it.
      const [answer] = await Promise.all([
        page.waitForNavigation(),
        fillLogin(page, 'victim@example.com', `wrong-${statuses.length}`),
      ])
      assert.ok(answer)
      statuses.push(answer.status())
      if (answer.status() === 429) assert.match(answer.headers()['retry-after'] ?? '', /^[1-9]\d*$/)
      await page.getByRole('alert').waitFor()
    }
    assert.deepEqual(statuses.slice(0, 5), [401, 401, 401, 401, 401])
    assert.equal(statuses.at(-1), 429)
    await page.getByText(/Too many wrong passwords. Try again in \d+ s/).waitFor()
    await screenshot(page, 'login-throttled')
    assert.deepEqual(
      complaints.filter((text) => !/status of 4(01|29)/.test(text)),
      [],
    )
    await page.close()
    process.interrupt()
    await process.ended
  })

  it('the login page belongs to the browser that began the login', async () => {
    const process = await startLogin(['--no-browser'], env())
    const start = await fetch(process.addresses[0] ?? '', { redirect: 'manual' })
    const place = new URL(start.headers.get('location') ?? '', server.apiUrl).href
    const cookie = start.headers
      .getSetCookie()
      .map((text) => text.split(';')[0])
      .join('; ')
    const post = (headers: Record<string, string>) =>
      fetch(place, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams({ email: ada, password }) })
    assert.equal((await post({})).status, 400)
    assert.equal((await post({ cookie, origin: 'https://evil.example' })).status, 403)
    const forged = cookie.replace(/(?<=svc3_login\w*=)./, (first) => (first === 'x' ? 'y' : 'x'))
    assert.equal((await post({ cookie: forged })).status, 400)
    assert.equal((await post({ cookie, host: 'evil.example' })).status, 303)
    process.interrupt()
    await process.ended
  })
})

describe('a login', () => {
  it('a login is renewed silently, by one of many at once, and ends with logout', { timeout: 400_000 }, async () => {
    await login(ada)
    const first = await storedLogin(home)
    await expireStoredToken(home)
    const many = await Promise.all([run('user', 'get-token'), run('namespace', 'list'), run('user', 'get-token')])
    assert.deepEqual(
      many.map(({ code, stderr }) => [code, stderr]),
      [
        [0, ''],
        [0, ''],
        [0, ''],
      ],
    )
    const second = await storedLogin(home)
    assert.notEqual(second.token, first.token)
    assert.notEqual(second.refreshToken, first.refreshToken)
    assert.deepEqual([many[0]?.stdout, many[2]?.stdout], [`${second.token}\n`, `${second.token}\n`])
    // A token that is about to run out is renewed as well.
    await expireStoredToken(home, new Date(Date.now() + 30_000).toISOString())
    assert.notEqual((await run('user', 'get-token')).stdout, `${second.token}\n`)
    const third = await storedLogin(home)
    assert.match((await run('user', 'logout')).stdout, /^Logged out of /)
    const { token, refreshToken } = await storedLogin(home)
    assert.deepEqual([token, refreshToken], [undefined, undefined])
    // What logout ended cannot be taken up again, and neither can a refresh token that was used before.
    for (const old of [third.refreshToken, second.refreshToken]) assert.equal(await refreshStatus(old), 400)
  })

  it('a login that cannot be renewed says so with exit code 3', { timeout: 400_000 }, async () => {
    await addUser('gone@example.com')
    await login('gone@example.com')
    const { token } = await storedLogin(home)
    assert.equal(await tokenStatus(token), 200)
    const removed = await svc3(['server', 'users', 'remove', 'gone@example.com', '--data', data])
    assert.match(removed.stdout, /removed/)
    await eventually(async () => assert.equal(await tokenStatus(token), 401, 'the token is still good'))
    assert.equal((await run('namespace', 'list')).code, 3)
    await expireStoredToken(home)
    const { code, stdout, stderr } = await run('user', 'get-token')
    assert.deepEqual([code, stdout], [3, ''])
    assert.match(stderr, /Unauthorized: the login has expired or was ended\nsvc3: Run \S*svc3 login/)
  })

  it('a login ends when its user gets another password', { timeout: 400_000 }, async () => {
    await addUser('reset@example.com')
    await login('reset@example.com')
    const token = (await run('user', 'get-token')).stdout.trim()
    assert.equal(await tokenStatus(token), 200)
    await setPassword(data, 'reset@example.com', `${password}-2`)
    await eventually(async () => assert.equal(await tokenStatus(token), 401, 'the token is still good'))
    await expireStoredToken(home)
    assert.equal((await run('user', 'get-token')).code, 3)
    assert.equal((await login('reset@example.com', `${password}-2`)).code, 0)
  })

  it('a login survives a restart of the server that ends by kill -9', { timeout: 400_000 }, async () => {
    const folder = await makeFolder()
    const first = await startDev(folder, { listen: `${ownAddress()}:0` })
    await setPassword(folder, 'admin@localhost', password)
    const place = { SVC3_DATA: folder, XDG_CONFIG_HOME: home }
    const process = await startLogin(['--no-browser'], place)
    const page = await browser.newPage()
    await page.goto(process.addresses[0] ?? '')
    await fillLogin(page, 'admin@localhost', password)
    await page.getByText('You can close this window').waitFor()
    await page.close()
    assert.equal((await process.ended).code, 0)
    await first.kill('SIGKILL')
    await using second = await startDev(folder, { listen: new URL(first.apiUrl).host })
    await svc3(['server', 'rotate-master-key', '--data', folder])
    await expireStoredToken(home)
    const { code, stderr } = await svc3(['user', 'get-token'], { env: place })
    assert.equal(code, 0, stderr + second.output())
    await second.kill('SIGKILL')
    await fs.rm(folder, { recursive: true, force: true })
  })
})

describe('svc3 login by HTTPS', () => {
  it('svc3 login by HTTPS trusts the provider by the certificate that was accepted for the service', {
    timeout: 400_000,
  }, async () => {
    const folder = await makeFolder()
    await using secure = await startDev(folder, { command: [program, 'server'] })
    const args = ['server', 'users', 'add', ada, '--password-stdin', '--data', folder]
    assert.equal((await svc3(args, { input: password })).code, 0)
    const fingerprint = /^ {2}((?:[0-9A-F]{2}:){31}[0-9A-F]{2})$/m.exec(secure.output())?.[1] ?? ''
    const place = { SVC3_API_URL: secure.apiUrl, XDG_CONFIG_HOME: home, SVC3_DATA: folder }
    const distrusted = await svc3(['login', '--no-browser'], {
      env: { ...place, SVC3_FINGERPRINT: fingerprint.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) },
    })
    assert.equal(distrusted.code, 1, distrusted.stderr)
    const process = await startLogin(['--no-browser'], { ...place, SVC3_FINGERPRINT: fingerprint })
    const context = await browser.newContext({ ignoreHTTPSErrors: true })
    const page = await context.newPage()
    const complaints = complaintsOf(page)
    await page.goto(process.addresses[0] ?? '')
    assert.match(page.url(), /^https:/)
    await fillLogin(page, ada, password)
    await page.getByText('You are logged in').waitFor()
    assert.ok((await context.cookies()).every(({ secure: isSecure, httpOnly }) => isSecure && httpOnly))
    assert.deepEqual(complaints, [])
    await context.close()
    const { code, stdout, stderr } = await process.ended
    assert.deepEqual(
      [code, stdout],
      [0, `Logged in to ${secure.apiUrl} as ${ada} (context ${new URL(secure.apiUrl).host}).\n`],
      stderr,
    )
    await expireStoredToken(home)
    const renewed = await svc3(['user', 'get-token'], { env: { ...place, SVC3_FINGERPRINT: fingerprint } })
    assert.equal(renewed.code, 0, renewed.stderr)
    await secure.kill('SIGKILL')
    await fs.rm(folder, { recursive: true, force: true })
  })
})

describe('secrets of logins', () => {
  it('secrets of logins are in no file of the data folder, no log and no process', { timeout: 400_000 }, async () => {
    const process = await startLogin(['--no-browser'], env())
    const page = await browser.newPage()
    await page.goto(process.addresses[0] ?? '')
    const session = (await page.context().cookies()).map(({ value }) => value)
    await fillLogin(page, ada, password)
    await page.getByText('You can close this window').waitFor()
    const code = new URL(page.url()).searchParams.get('code') ?? ''
    session.push(...(await page.context().cookies()).map(({ value }) => value))
    await page.close()
    await process.ended
    const { token, refreshToken } = await storedLogin(home)
    const device = await startLogin(['--device'], env())
    const processes = execFileSync('ps', ['axeww', '-o', 'args'], { encoding: 'utf8' })
    const log = server.output()
    assert.ok(!log.includes('oidc-provider'), 'the library talks to our users')
    const secrets = [password, token, refreshToken, code, device.code, device.code.replace('-', ''), ...session]
    assert.ok(secrets.length > 7 && secrets.every((secret) => secret.length >= 8), JSON.stringify(secrets))
    for (const secret of secrets) {
      assert.ok(!log.includes(secret), 'in the log')
      assert.ok(!processes.includes(secret), 'in the list of processes')
      assert.deepEqual(await filesWith(data, secret), [])
    }
    device.interrupt()
    await device.ended
  })
})

async function refreshStatus(refreshToken: string): Promise<number> {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken, client_id: 'svc3-cli' })
  return (await fetch(`${server.apiUrl}/oidc/token`, { method: 'POST', body })).status
}
