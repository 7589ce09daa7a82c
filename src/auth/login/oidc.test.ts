// Valid and forged ID tokens of a provider with discovery document and keys on HTTP, and how often these are fetched.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { exportJWK, generateKeyPair, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { ApiError } from '../../api/errors.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import { createIdentity, type LoginIdentity } from './oidc.ts'
import { remoteKeys } from './provider-keys.ts'
import { createUsedTokens } from './used-tokens.ts'

const clientId = 'svc3'
const store = openMemory()
let collections: Collections
let server: Server
let issuer: string
let keys: JWK[]
let asked: string[]
let broken = false
let laterMs = 0
let userinfo: (authorization: string | undefined) => { status?: number; body?: unknown }
let ours: Awaited<ReturnType<typeof generateKeyPair>>
let others: Awaited<ReturnType<typeof generateKeyPair>>
let time: { ms: number }
let identity: LoginIdentity

before(async () => {
  collections = await openCollections(store)
  ours = await generateKeyPair('ES256', { extractable: true })
  others = await generateKeyPair('ES256', { extractable: true })
  server = createServer((request, response) => {
    asked.push(request.url ?? '')
    if (broken) return void response.writeHead(500).end()
    if (request.url === '/userinfo') {
      const { status = 200, body } = userinfo(request.headers.authorization)
      return void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    const about = { issuer, jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/userinfo` }
    response.end(JSON.stringify(request.url === '/keys' ? { keys } : about))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await collections[Symbol.asyncDispose]()
  await store.close()
})
beforeEach(async () => {
  keys = [{ ...(await exportJWK(ours.publicKey)), kid: 'one', alg: 'ES256' }]
  asked = []
  broken = false
  userinfo = () => ({ status: 404 })
  time = { ms: 0 }
  identity = createIdentity({
    issuer: () => issuer,
    clientId,
    emailClaim: 'email',
    groupsClaim: 'groups',
    adminGroups: ['platform', 'root'],
    keys: remoteKeys(issuer, { nowMs: () => time.ms }),
    clock: { now: () => new Date(Date.now() + laterMs) },
    used: createUsedTokens(collections.used),
  })
})

const now = (): number => Math.floor(Date.now() / 1_000)
let made = 0
const good = () => ({
  iss: issuer,
  aud: clientId,
  sub: 's',
  email: 'Ada@Example.com',
  iat: now(),
  exp: now() + 300,
  jti: String(made++),
})
type Claims = Record<string, unknown>
const sign = (claims: Claims, header: { kid?: string; typ?: string } = { kid: 'one' }, key = ours.privateKey) =>
  new SignJWT(claims).setProtectedHeader({ alg: 'ES256', ...header }).sign(key)

async function refusal(token: string, accessToken?: string): Promise<ApiError> {
  const error = await identity.verify(token, accessToken).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ApiError, 'it was accepted')
  return error
}

describe('ID token', () => {
  it('an ID token becomes a user: email in lower case, administrator by group', async () => {
    assert.deepEqual(await identity.verify(await sign(good())), { kind: 'user', name: 'ada@example.com', admin: false })
    for (const groups of [['staff', 'platform'], 'root']) {
      const user = await identity.verify(await sign({ ...good(), groups, email_verified: true }))
      assert.equal(user.admin, true)
    }
    for (const groups of [['Platform'], 'platform,root', { platform: true }, [['platform']], null])
      assert.equal((await identity.verify(await sign({ ...good(), groups }))).admin, false, JSON.stringify(groups))
  })

  it('an ID token may be a minute off, and may have several audiences if azp is ours', async () => {
    await identity.verify(await sign({ ...good(), iat: now() + 50, exp: now() - 50 }))
    await identity.verify(await sign({ ...good(), aud: [clientId, 'other'], azp: clientId }))
  })

  const forgeries: Readonly<Record<string, () => string | Promise<string>>> = {
    'no token': () => 'nonsense',
    'three dots': () => '...',
    'alg none': () => new UnsecuredJWT(good()).encode(),
    'alg none with a signature': async () => {
      const [, payload] = (await sign(good())).split('.')
      return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.AAAA`
    },
    'HS256 with the public key as secret': async () =>
      new SignJWT(good())
        .setProtectedHeader({ alg: 'HS256', kid: 'one' })
        .sign(Buffer.from(JSON.stringify(await exportJWK(ours.publicKey)))),
    'another key under our name': () => sign(good(), { kid: 'one' }, others.privateKey),
    'a key that comes along': async () =>
      new SignJWT(good())
        .setProtectedHeader({ alg: 'ES256', jwk: await exportJWK(others.publicKey) })
        .sign(others.privateKey),
    'a key from elsewhere': () =>
      new SignJWT(good())
        .setProtectedHeader({ alg: 'ES256', kid: 'one', jku: 'https://evil.example/keys' })
        .sign(others.privateKey),
    'changed claims': async () => {
      const [header, , signature] = (await sign(good())).split('.')
      const claims = Buffer.from(JSON.stringify({ ...good(), groups: ['root'] })).toString('base64url')
      return `${header}.${claims}.${signature}`
    },
    'wrong issuer': () => sign({ ...good(), iss: 'https://evil.example' }),
    'issuer with a slash': () => sign({ ...good(), iss: `${issuer}/` }),
    'wrong audience': () => sign({ ...good(), aud: 'other' }),
    'several audiences, made for another': () => sign({ ...good(), aud: [clientId, 'other'], azp: 'other' }),
    'several audiences, made for nobody': () => sign({ ...good(), aud: [clientId, 'other'] }),
    expired: () => sign({ ...good(), exp: now() - 61 }),
    'without end': () => sign({ ...good(), exp: undefined }),
    'without beginning': () => sign({ ...good(), iat: undefined }),
    'from the future': () => sign({ ...good(), iat: now() + 120 }),
    'not valid yet': () => sign({ ...good(), nbf: now() + 120 }),
    'found long after': () => sign({ ...good(), iat: now() - 700, exp: now() + 7_200 }),
    'an access token': () => sign(good(), { kid: 'one', typ: 'at+jwt' }),
    'without e-mail': () => sign({ ...good(), email: undefined }),
    'an unverified e-mail': () => sign({ ...good(), email_verified: false }),
    'an unverified e-mail in words': () => sign({ ...good(), email_verified: 'false' }),
    'no e-mail address': () => sign({ ...good(), email: 'ada\n@example.com' }),
    'an e-mail address that would become another’s': () => sign({ ...good(), email: '\u212aim@example.com' }),
    'an e-mail address that is a list': () => sign({ ...good(), email: 'a,b@example.com' }),
    'several e-mail addresses': () => sign({ ...good(), email: ['a@b.c'] }),
    'without subject': () => sign({ ...good(), sub: undefined }),
  }
  for (const [name, make] of Object.entries(forgeries)) {
    it(`an ID token is refused: ${name}`, async () => {
      const { code, message } = await refusal(await make())
      assert.equal(code, 401)
      assert.equal(message, 'Unauthorized: the token of the identity provider is invalid')
    })
  }
})

describe('ID token that was exchanged', () => {
  it('an exchanged ID token is refused after ten seconds, also with another encoding of its signature', async () => {
    const token = await sign(good())
    await identity.verify(token)
    // A client whose response was lost repeats the exchange immediately.
    await identity.verify(token)
    laterMs = 11_000
    const { code, cause } = await refusal(token)
    assert.equal(code, 401)
    assert.match(String(cause), /was already used/)
    const [header, payload, signature = ''] = token.split('.')
    // The last letter of 64 encoded bytes has two bits that decoders ignore.
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = letters[letters.indexOf(signature.slice(-1)) ^ 1]
    assert.equal((await refusal(`${header}.${payload}.${signature.slice(0, -1)}${same}`)).code, 401)
    laterMs = 0
  })

  it('an ID token whose exchange failed because the provider was down can be exchanged again', async () => {
    const token = await sign({ ...good(), email: undefined })
    userinfo = () => ({ status: 503 })
    assert.equal((await refusal(token, 'access')).code, 503)
    userinfo = () => ({ body: { sub: 's', email: 'ada@example.com' } })
    assert.equal((await identity.verify(token, 'access')).name, 'ada@example.com')
  })

  it('an exchanged ID token is refused by other servers, too', async () => {
    await using other = await openCollections(store)
    const [one, two] = [createUsedTokens(collections.used), createUsedTokens(other.used)]
    const [untilMs, nowMs] = [100_000, 0]
    assert.equal(await one.take('a.a.x', untilMs, nowMs), 'first')
    assert.equal(await two.take('a.a.y', untilMs, nowMs + 9_000), 'repeated')
    assert.equal(await two.take('a.a.y', untilMs, nowMs + 11_000), 'refused')
    await one.giveBack('a.a.x')
    assert.equal(await two.take('a.a.x', untilMs, nowMs + 11_000), 'first')
  })
})

describe('userinfo', () => {
  const bare = () => sign({ ...good(), email: undefined })
  const about = { sub: 's', email: 'Grace@Example.com', groups: ['root'] }

  it('userinfo adds claims that the ID token lacks', async () => {
    userinfo = (authorization) => (authorization === 'Bearer access' ? { body: about } : { status: 401 })
    assert.deepEqual(await identity.verify(await bare(), 'access'), {
      kind: 'user',
      name: 'grace@example.com',
      admin: true,
    })
    // Claims of the ID token take precedence.
    assert.deepEqual(await identity.verify(await sign(good()), 'access'), {
      kind: 'user',
      name: 'ada@example.com',
      admin: true,
    })
    // Without groups a user is no administrator, but may log in.
    assert.equal((await identity.verify(await sign(good()), 'another')).admin, false)
  })

  it('userinfo is not read for complete or invalid ID tokens', async () => {
    await identity.verify(await sign({ ...good(), groups: [] }), 'access')
    await refusal(await sign({ ...good(), exp: now() - 100 }), 'access')
    assert.ok(!asked.includes('/userinfo'))
  })

  const refusals: Readonly<Record<string, readonly [{ status?: number; body?: unknown }, string | undefined, RegExp]>> =
    {
      'no access token': [{ body: about }, undefined, /no claim "email": the client sent no access token/],
      'of another user': [{ body: { ...about, sub: 't' } }, 'access', /userinfo’s "sub"/],
      'without subject': [{ body: { ...about, sub: undefined } }, 'access', /userinfo’s "sub"/],
      'that refuses': [{ status: 403 }, 'access', /no claim "email": http.*\/userinfo answered 403/],
      'without e-mail': [{ body: { sub: 's' } }, 'access', /no claim "email", nor does userinfo/],
      'with an unverified e-mail': [
        { body: { ...about, email_verified: false } },
        'access',
        /"email_verified" is false/,
      ],
    }
  for (const [name, [answer, accessToken, reason]] of Object.entries(refusals)) {
    it(`userinfo is refused: ${name}`, async () => {
      userinfo = () => answer
      const { code, message, cause } = await refusal(await bare(), accessToken)
      assert.deepEqual([code, message], [401, 'Unauthorized: the token of the identity provider is invalid'])
      assert.match(String(cause), reason)
    })
  }

  it('userinfo that is too long or no JSON counts as an outage', async () => {
    for (const body of ['x'.repeat(1_100_000), '<html>', '[]', 'null']) {
      userinfo = () => ({ body })
      assert.equal((await refusal(await bare(), 'access')).code, 503)
    }
  })
})

describe('provider', () => {
  it('keys are fetched once for many tokens, and never for malformed ones', async () => {
    for (const bad of ['x', new UnsecuredJWT(good()).encode(), await sign({ ...good(), iss: 'https://evil.example' })])
      await refusal(bad)
    assert.deepEqual(asked, [])
    await Promise.all(Array.from({ length: 20 }, async () => identity.verify(await sign(good()))))
    assert.deepEqual(asked, ['/.well-known/openid-configuration', '/keys'])
    time.ms += 11 * 60_000
    await identity.verify(await sign(good()))
    assert.equal(asked.length, 4)
  })

  it('keys are fetched again for an unknown key, at most every 30 s', async () => {
    await identity.verify(await sign(good()))
    const fresh = await sign(good(), { kid: 'two' }, others.privateKey)
    for (let index = 0; index < 10; index++) assert.equal((await refusal(fresh)).code, 401)
    assert.equal(asked.length, 2)
    keys = [{ ...(await exportJWK(others.publicKey)), kid: 'two', alg: 'ES256' }]
    time.ms += 31_000
    assert.equal((await identity.verify(fresh)).name, 'ada@example.com')
    for (let index = 0; index < 10; index++) await refusal(await sign(good(), { kid: `odd-${index}` }))
    assert.equal(asked.length, 4)
  })

  it('cached keys are used for a day while the provider is down; without them the login fails with the reason', async () => {
    broken = true
    const token = await sign(good())
    for (let index = 0; index < 5; index++) {
      const error = await refusal(token)
      assert.equal(error.code, 503)
      assert.match(error.message, /The identity provider http.* does not answer: .*answered 500/)
      assert.match(error.options.hint ?? '', /existing logins and tokens keep working/)
    }
    assert.equal(asked.length, 1)
    broken = false
    time.ms += 6_000
    await identity.verify(token)
    broken = true
    time.ms += 3_600_000
    await identity.verify(await sign(good()))
    time.ms += 24 * 3_600_000
    assert.equal((await refusal(await sign(good()))).code, 503)
  })

  it('a provider with another issuer is refused', async () => {
    const twin = remoteKeys(`${issuer}/twin`)
    await assert.rejects(async () => twin.getKey({ alg: 'ES256' }, { payload: '', signature: '' }), /its issuer is/)
  })
})
