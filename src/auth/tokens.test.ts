// Valid tokens, and every way to forge one.
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { exportJWK, SignJWT, UnsecuredJWT } from 'jose'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { loadSigningKeys, type SigningKeys } from './signing-keys.ts'
import { createTokens, userTokenSeconds } from './tokens.ts'

const admin = { kind: 'user', name: 'a@example.com', admin: true } as const
let service: TestService
let keys: SigningKeys
beforeEach(async () => {
  service = await startService()
  keys = await loadSigningKeys(service.services.collections.signingKeys, service.services.secrets, service.clock)
})
afterEach(() => service[Symbol.asyncDispose]())

const verify = (token: string) => service.services.tokens.verify(token)
const nowSeconds = (): number => service.clock.nowMs / 1_000

/** A token with one property changed. */
function unsigned(claims: object = {}, header: object = {}): SignJWT {
  return new SignJWT({ kind: 'user', admin: true, ...claims })
    .setProtectedHeader({ alg: 'EdDSA', kid: keys.active.kid, ...header })
    .setIssuer('svc3')
    .setAudience('svc3-api')
    .setSubject('a@example.com')
    .setIssuedAt(nowSeconds())
    .setExpirationTime(nowSeconds() + 3_600)
    .setJti('1')
}

/** As above, encoded by hand, also in ways that no library would. */
function spelled(claims: object | null = {}, header: object = {}): string {
  const iat = nowSeconds()
  const usual = {
    iss: 'svc3',
    aud: 'svc3-api',
    sub: 'a@example.com',
    kind: 'user',
    admin: true,
    iat,
    exp: iat + 60,
    jti: '1',
  }
  const text = [{ alg: 'EdDSA', kid: keys.active.kid, ...header }, claims && { ...usual, ...claims }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${sign(null, Buffer.from(text), keys.active.privateKey).toString('base64url')}`
}

describe('token', () => {
  it('a token is valid for an hour, with a minute of tolerance', async () => {
    const { token, expiresAt } = await service.services.tokens.issue(admin)
    assert.equal(expiresAt?.getTime(), service.clock.nowMs + userTokenSeconds * 1_000)
    assert.deepEqual(await verify(token), admin)
    service.clock.nowMs += (userTokenSeconds + 59) * 1_000
    assert.deepEqual(await verify(token), admin)
    service.clock.nowMs += 2_000
    assert.equal(await verify(token), undefined)
  })

  it('an expired token is not served from the cache', async () => {
    const { token } = await service.services.tokens.issue(admin)
    await verify(token)
    assert.deepEqual(service.services.tokens.known(token), admin)
    service.clock.nowMs += (userTokenSeconds + 61) * 1_000
    assert.equal(service.services.tokens.known(token), undefined)
    assert.equal(await verify(token), undefined)
  })

  it('a token is valid after a restart, because the keys are in the store', async () => {
    const { token } = await service.services.tokens.issue(admin)
    const again = await loadSigningKeys(
      service.services.collections.signingKeys,
      service.services.secrets,
      service.clock,
    )
    assert.deepEqual(await createTokens(again, service.clock, () => true).verify(token), admin)
  })

  it('a token that is made like the forgeries, with nothing changed, is valid', async () => {
    assert.deepEqual(await verify(await unsigned().sign(keys.active.privateKey)), admin)
    assert.deepEqual(await verify(spelled()), admin)
  })
})

describe('forged tokens', () => {
  const stranger = generateKeyPairSync('ed25519')
  const forgeries: Readonly<Record<string, () => Promise<string> | string>> = {
    'with alg none': () =>
      new UnsecuredJWT({ kind: 'user', admin: true })
        .setSubject('a')
        .setIssuer('svc3')
        .setAudience('svc3-api')
        .setExpirationTime('1h')
        .encode(),
    'signed by HS256 with the public key': async () => {
      const jwk = await exportJWK(createPublicKey(keys.active.privateKey))
      return unsigned({}, { alg: 'HS256' }).sign(Buffer.from(jwk.x ?? '', 'base64url'))
    },
    'signed by a stranger': () => unsigned().sign(stranger.privateKey),
    'with an unknown kid': () => unsigned({}, { kid: '../../etc/passwd' }).sign(stranger.privateKey),
    'without a kid': () => unsigned({}, { kid: undefined }).sign(keys.active.privateKey),
    'with its own key in jwk': async () =>
      unsigned({}, { jwk: await exportJWK(stranger.publicKey) }).sign(stranger.privateKey),
    'with a jku': () => unsigned({}, { jku: 'http://127.0.0.1:1/keys' }).sign(stranger.privateKey),
    'of another issuer': () => unsigned().setIssuer('other').sign(keys.active.privateKey),
    'for another audience': () => unsigned().setAudience('other').sign(keys.active.privateKey),
    'without an end': async () => {
      const { exp: _, ...claims } = {
        exp: 0,
        kind: 'user',
        admin: true,
        iss: 'svc3',
        aud: 'svc3-api',
        sub: 'a',
        jti: '1',
        iat: nowSeconds(),
      }
      return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: keys.active.kid }).sign(keys.active.privateKey)
    },
    'not yet valid': () =>
      unsigned()
        .setNotBefore(nowSeconds() + 3_600)
        .sign(keys.active.privateKey),
    'that ended': () => spelled({ exp: nowSeconds() - 61 }),
    'with an end that is a text': () => spelled({ exp: 'never' }),
    'without an issue time': () => spelled({ iat: undefined }),
    'without an id': () => spelled({ jti: undefined }),
    'with a fourth part': () => `${spelled()}.e30`,
    'without its signature': () => spelled().replace(/[^.]*$/, ''),
    'with claims that are no object': () => spelled(null),
    'of a kind that is not there': () => unsigned({ kind: 'root' }).sign(keys.active.privateKey),
    'with admin as a text': () => unsigned({ admin: 'true' }).sign(keys.active.privateKey),
    'with a byte changed': async () => {
      const token = await unsigned().sign(keys.active.privateKey)
      const [header, payload, signature] = token.split('.')
      const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString())
      return [header, Buffer.from(JSON.stringify({ ...claims, sub: 'root' })).toString('base64url'), signature].join(
        '.',
      )
    },
    'with padding behind it': async () => `${await unsigned().sign(keys.active.privateKey)}==`,
    'with white space in it': async () => (await unsigned().sign(keys.active.privateKey)).replaceAll('.', '.\t'),
    'with other bits behind the end of its signature': async () => {
      const token = await unsigned().sign(keys.active.privateKey)
      const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return token.slice(0, -1) + letters.charAt(letters.indexOf(token.slice(-1)) + 1)
    },
    'that is no token': () => 'x',
    'that is empty': () => '',
    'that is endless': () => `${'a'.repeat(9_000)}.b.c`,
    'of odd bytes': () => 'é.ü.\u0000',
  }
  for (const [name, forge] of Object.entries(forgeries)) {
    it(`a forged token is refused: ${name}`, async () => {
      const token = await forge()
      assert.equal(await verify(token), undefined)
      if (!/^[\x21-\x7e]+$/.test(token)) return
      const answer = await service.call('GET', '/api/v1/namespaces', { token })
      assert.equal(answer.status, 401)
      assert.equal(answer.body.message, 'Unauthorized: the token is missing, invalid or expired')
    })
  }
})
