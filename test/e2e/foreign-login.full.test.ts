// Logging in with an organisation's own identity provider: real provider, server, command line and browser; and what
// happens while the provider is down.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { type DevServer, makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { expireStoredToken, launchBrowser, startLogin, storedLogin } from '../support/rigs/login.ts'
import { type ForeignProvider, passForeignPages, startForeignProvider } from '../support/stand-ins/foreign-provider.ts'

let data: string
let home: string
let provider: ForeignProvider
let server: DevServer
let browser: Browser
before(async () => {
  data = await makeFolder()
  provider = await startForeignProvider()
  const auth = { issuer: provider.issuer, clientId: provider.clientId, adminGroups: ['platform'] }
  await fs.writeFile(path.join(data, 'config.json'), JSON.stringify({ auth }))
  ;[server, browser] = await Promise.all([startDev(data), launchBrowser()])
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
  await fs.rm(data, { recursive: true, force: true })
})
beforeEach(async () => {
  home = await makeFolder()
})
afterEach(() => fs.rm(home, { recursive: true, force: true }))

const env = () => ({ SVC3_DATA: data, XDG_CONFIG_HOME: home })
const run = (...args: string[]) => svc3(args, { env: env() })

async function login(name: string) {
  const process = await startLogin(['--no-browser'], env())
  const page = await browser.newPage()
  await page.goto(process.addresses[0] ?? '')
  await passForeignPages(page, name)
  await page.getByText('You are logged in').waitFor()
  await page.close()
  return process.ended
}

describe('svc3 login with an organisation’s own provider', () => {
  it('svc3 login with an organisation’s own provider takes e-mail and groups from it, and renews with it', async () => {
    provider.groupsOf.set('ada', ['staff'])
    assert.equal(
      (await login('ada')).stdout,
      `Logged in to ${server.apiUrl} as ada@corp.example (context ${new URL(server.apiUrl).host}).\n`,
    )
    assert.equal((await run('regcred', 'list')).code, 4)
    const first = await storedLogin(home)
    assert.equal(first.issuer, provider.issuer)
    // Made an administrator there: the next token says so.
    provider.groupsOf.set('ada', ['staff', 'platform'])
    await expireStoredToken(home)
    assert.equal((await run('regcred', 'list')).code, 0)
    const second = await storedLogin(home)
    assert.notEqual(second.refreshToken, first.refreshToken)
  })

  it('svc3 login with an organisation’s own provider logs a device in by its code', async () => {
    const process = await startLogin(['--device'], env())
    const page = await browser.newPage()
    await page.goto(process.addresses[1] ?? '')
    await page.getByRole('button', { name: 'Continue' }).click()
    await passForeignPages(page, 'grace')
    await page.getByText('Sign-in Success').first().waitFor()
    await page.close()
    assert.equal(
      (await process.ended).stdout,
      `Logged in to ${server.apiUrl} as grace@corp.example (context ${new URL(server.apiUrl).host}).\n`,
    )
  })

  it('svc3 login with an organisation’s own provider has no built-in provider beside it', async () => {
    assert.equal((await fetch(`${server.apiUrl}/oidc/.well-known/openid-configuration`)).status, 404)
    const info = (await server.call('GET', '/api/v1/cluster-info')).body
    assert.deepEqual([info.baseOauthEndpoint, info.appClientId], [provider.issuer, provider.clientId])
  })

  it('svc3 login with an organisation’s own provider while the provider is down: issued tokens work, logins say what is wrong; afterwards all goes on', async () => {
    await login('ada')
    const { token } = await storedLogin(home)
    await provider.stop()
    assert.equal((await run('namespace', 'list')).code, 0)
    const { code, stderr } = await run('login', '--force', '--no-browser')
    assert.equal(code, 1)
    assert.match(stderr, /^svc3: The identity provider does not answer: Cannot reach .*ECONNREFUSED\)\nsvc3: \S/)
    // Still valid for most of a minute, so it is used without a refresh.
    await expireStoredToken(home, new Date(Date.now() + 55_000).toISOString())
    assert.equal((await run('user', 'get-token')).stdout, `${token}\n`)
    await expireStoredToken(home)
    const late = await run('user', 'get-token')
    assert.deepEqual([late.code, late.stdout], [1, ''])
    assert.match(late.stderr, /identity provider does not answer/)
    await provider.start()
    assert.notEqual((await run('user', 'get-token')).stdout, `${token}\n`)
    assert.equal((await run('namespace', 'list')).code, 0)
  })
})
