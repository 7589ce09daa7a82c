// The stored login: set, shown, forgotten, chosen by server; and the commands about users of the built-in provider.
// Real logins are in test/e2e/login.full.test.ts.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { ApiError } from '../../api/errors.ts'

let home: string
let service: FakeService
beforeEach(async () => {
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-login-'))
  service = await startFakeService()
})
afterEach(async () => {
  fs.rmSync(home, { recursive: true })
  await service[Symbol.asyncDispose]()
})

const file = () => path.join(home, 'svc3', 'config.json')
const config = () => JSON.parse(fs.readFileSync(file(), 'utf8'))
const store = (content: object) => {
  fs.mkdirSync(path.dirname(file()), { recursive: true })
  fs.writeFileSync(file(), JSON.stringify(content))
}
const env = (more: Record<string, string> = {}) => ({ XDG_CONFIG_HOME: home, ...more })
const there = () => env({ SVC3_API_URL: service.apiUrl })
const host = () => new URL(service.apiUrl).host
const jwt = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`

describe('user set-token', () => {
  it('user set-token stores a token from standard input privately, with its expiry', async () => {
    const token = jwt({ exp: 1_800_000_000 })
    const { exitCode, stdout, stderr } = await run(['user', 'set-token', '-'], { env: there(), input: `${token}\n` })
    assert.deepEqual([exitCode, stderr], [0, ''])
    assert.equal(stdout, `Token stored for ${service.apiUrl} (context ${host()}).\n`)
    assert.equal(fs.statSync(file()).mode & 0o777, 0o600)
    assert.equal(fs.statSync(path.dirname(file())).mode & 0o777, 0o700)
    const stored = { apiUrl: service.apiUrl, token, tokenExpiresAt: '2027-01-15T08:00:00Z' }
    assert.deepEqual(config(), { currentContext: host(), contexts: { [host()]: stored } })
    assert.deepEqual(fs.readdirSync(path.dirname(file())), ['config.json'])
    assert.equal((await run(['user', 'get-token'], { env: env() })).stdout, `${token}\n`)
  })

  it('user set-token warns about a token on the command line, and never repeats it', async () => {
    const options = { env: there(), terminal: { stdout: true } }
    const { stderr, exitCode } = await run(['user', 'set-token', service.token], options)
    assert.equal(exitCode, 0)
    assert.match(stderr, /Other users of this machine can see/)
    assert.equal((await run(['regcred', 'list', '-o', 'json'], { env: env() })).stdout, '[]\n')
    for (const words of [['planted token'], ['planted-1', 'planted-2'], ['--planted']]) {
      const refused = await run(['user', 'set-token', ...words], { env: there() })
      assert.equal(refused.exitCode, 2)
      if (words[0] !== '--planted') assert.ok(!refused.stderr.includes('planted'), refused.stderr)
    }
  })

  it('user set-token leaves other contexts and unknown fields as they are, and removes the old login', async () => {
    const other = { apiUrl: 'https://other.example', token: 'x', color: 'blue' }
    const old = { apiUrl: service.apiUrl, namespace: 'svc-ios', refreshToken: 'r', issuer: 'i', clientId: 'c' }
    store({ currentContext: 'other', contexts: { other, work: old }, theme: 'dark' })
    await run(['user', 'set-token', '-'], { env: there(), input: 'abc' })
    const { refreshToken: _, ...kept } = old
    const contexts = { other, work: { ...kept, token: 'abc' } }
    assert.deepEqual(config(), { currentContext: 'work', contexts, theme: 'dark' })
  })

  it('user set-token says so when there is no place for the config file, or it cannot be written', async () => {
    const nowhere = await run(['user', 'set-token', '-'], { env: { SVC3_API_URL: service.apiUrl }, input: 'abc' })
    assert.equal(nowhere.exitCode, 1)
    assert.match(nowhere.stderr, /No place for a configuration file\n.*Set HOME/)
    fs.writeFileSync(path.join(home, 'svc3'), '')
    const blocked = await run(['user', 'set-token', '-'], { env: there(), input: 'abc' })
    assert.equal(blocked.exitCode, 1)
    assert.match(blocked.stderr, /Cannot write .*config\.json \(E\w+\)/)
  })
})

describe('user get-token', () => {
  it('user get-token exits 3 without a token, or with an expired one that cannot be renewed', async () => {
    const none = await run(['user', 'get-token'], { env: there() })
    assert.deepEqual([none.exitCode, none.stdout], [3, ''])
    assert.match(none.stderr, /Unauthorized: no token .*\nsvc3: Run svc3 login/)
    const late = { apiUrl: service.apiUrl, token: 'planted-token', tokenExpiresAt: '2026-11-15T11:00:00Z' }
    store({ currentContext: 'a', contexts: { a: late } })
    const { exitCode, stdout, stderr } = await run(['user', 'get-token'], { env: env() })
    assert.deepEqual([exitCode, stdout], [3, ''])
    assert.match(stderr, /expired at 2026-11-15T11:00:00Z\nsvc3: Run svc3 login --context a/)
    assert.ok(!stderr.includes('planted'))
  })

  it('user get-token prints SVC3_TOKEN before anything stored, without renewing that', async () => {
    const renewal = { refreshToken: 'r', issuer: 'http://127.0.0.1:1', clientId: 'c' }
    const late = { apiUrl: service.apiUrl, token: 't', tokenExpiresAt: '2020-01-01T00:00:00Z', ...renewal }
    store({ currentContext: 'a', contexts: { a: late } })
    const { exitCode, stdout } = await run(['user', 'get-token'], { env: env({ SVC3_TOKEN: 'mine' }) })
    assert.deepEqual([exitCode, stdout], [0, 'mine\n'])
  })

  it('user get-token takes the context of the server that SVC3_API_URL names', async () => {
    const other = { apiUrl: 'https://other.example', token: 'another' }
    store({ currentContext: 'other', contexts: { other, here: { apiUrl: service.apiUrl, token: 'this' } } })
    assert.equal((await run(['user', 'get-token'], { env: there() })).stdout, 'this\n')
    assert.equal((await run(['user', 'get-token'], { env: env() })).stdout, 'another\n')
  })
})

describe('login and logout', () => {
  it('login says at once who is logged in where, and how to log in again; a token that the service refuses is no login', async () => {
    const token = jwt({ sub: 'ada@example.com', kind: 'user' })
    store({ currentContext: 'a', contexts: { a: { apiUrl: service.apiUrl, token } } })
    service.override = (_, response) => void response.end(JSON.stringify({ items: [], metadata: {} }))
    const present = await run(['login'], { env: env(), terminal: { stdout: true }, typedAs: 'bin/svc3' })
    assert.deepEqual(
      [present.exitCode, present.stdout],
      [0, `Already logged in as ada@example.com on ${service.apiUrl} (context a)\n`],
    )
    assert.match(present.stderr, /^svc3: To log in again, .* run bin\/svc3 login --force\n$/)
    service.override = undefined
    assert.match((await run(['login', '--force'], { env: env() })).stderr, /has no identity provider/)
    service.override = (request, response) =>
      request.path.includes('namespaces')
        ? send(response, 401, new ApiError('Unauthorized', 'The token is invalid').toStatus('r'))
        : send(response, 200, { version: 'x' })
    assert.match((await run(['login'], { env: env() })).stderr, /has no identity provider/)
  })

  it('login says so when the service names no identity provider', async () => {
    const { exitCode, stderr } = await run(['login'], { env: there() })
    assert.equal(exitCode, 1)
    assert.match(stderr, /has no identity provider\nsvc3: Set SVC3_TOKEN/)
  })

  it('login sends nothing to a remote identity provider without TLS', async () => {
    const info = { version: 'x', baseOauthEndpoint: 'http://id.example', appClientId: 'svc3' }
    service.override = (_request, response) => void response.end(JSON.stringify(info))
    const { exitCode, stderr } = await run(['login', '--no-browser'], { env: there() })
    assert.equal(exitCode, 3)
    assert.match(stderr, /Identity provider http:\/\/id\.example does not use TLS/)
  })

  it('logout also works if the provider does not answer, and without a login', async () => {
    assert.equal((await run(['user', 'logout'], { env: there() })).stdout, `Not logged in to ${service.apiUrl}\n`)
    const renewal = { refreshToken: 'planted-refresh', issuer: 'http://127.0.0.1:1', clientId: 'c' }
    store({
      currentContext: 'a',
      contexts: { a: { apiUrl: service.apiUrl, token: 't', namespace: 'svc-x', ...renewal } },
    })
    const { exitCode, stdout, stderr } = await run(['user', 'logout'], { env: env() })
    assert.deepEqual([exitCode, stdout], [0, `Logged out of ${service.apiUrl}, context a\n`])
    assert.match(stderr, /The identity provider did not answer/)
    assert.ok(!fs.readFileSync(file(), 'utf8').includes('planted'))
    assert.equal(config().contexts.a.namespace, 'svc-x')
  })

  it('logout and login name the file by which the local server of a checkout still logs in', async () => {
    const { apiUrl } = service
    const adminToken = jwt({ sub: 'admin@localhost', kind: 'user' })
    const note = path.join(home, '.svc3', 'connection.json')
    fs.mkdirSync(path.dirname(note))
    fs.writeFileSync(note, JSON.stringify({ apiUrl, adminToken }))
    service.override = (_, response) => void response.end(JSON.stringify({ items: [], metadata: {} }))
    for (const more of [{}, { SVC3_API_URL: apiUrl }]) {
      const tell = (words: string) => run([words], { env: env(more), checkout: home })
      store({ currentContext: 'a', contexts: { a: { apiUrl, token: 't' } } })
      const still = `svc3: ${note} still logs you in as the administrator of the local server\n`
      const [out, again] = [await tell('logout'), await tell('logout')]
      assert.deepEqual([out.stdout, out.stderr], [`Logged out of ${apiUrl}, context a\n`, still])
      assert.deepEqual([again.stdout, again.stderr], [`No login is stored for ${apiUrl}, context a\n`, still])
      const login = await tell('login')
      assert.equal(login.stdout, `Already logged in as admin@localhost on ${apiUrl} (context a)\n`)
      assert.match(login.stderr, /^svc3: \S+connection\.json logs you in as the administrator of the local server\n/)
    }
  })

  it('logout ends the stored login at its provider also where SVC3_TOKEN is set, and says that the variable is', async () => {
    const revoked: string[] = []
    const issuer = service.apiUrl
    const endpoints = { token_endpoint: `${issuer}/token`, revocation_endpoint: `${issuer}/revoke` }
    service.override = (request, response) => {
      if (request.path === '/revoke') revoked.push(new URLSearchParams(request.body).get('token') ?? '')
      send(response, 200, { issuer, ...endpoints })
    }
    const renewal = { refreshToken: 'planted-refresh', issuer, clientId: 'c' }
    store({ currentContext: 'a', contexts: { a: { apiUrl: service.apiUrl, token: 't', ...renewal } } })
    const logout = () => run(['user', 'logout'], { env: env({ SVC3_TOKEN: 'mine' }) })
    const note = 'svc3: SVC3_TOKEN is set and still logs you in; unset it\n'
    const { stdout, stderr } = await logout()
    assert.deepEqual([stdout, stderr], [`Logged out of ${service.apiUrl}, context a\n`, note])
    assert.deepEqual(revoked, ['planted-refresh'])
    assert.ok(!fs.readFileSync(file(), 'utf8').includes('planted'))
    const again = await logout()
    assert.deepEqual([again.stdout, again.stderr], [`No login is stored for ${service.apiUrl}, context a\n`, note])
  })
})
