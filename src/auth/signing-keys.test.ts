// Rotation and revocation of signing keys. A rotation invalidates no token.
import assert from 'node:assert/strict'
import { createPrivateKey, hkdfSync, randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { openMemory } from '../store/memory.ts'
import { type Collections, openCollections } from '../store/records/collections.ts'
import type { Store } from '../store/store.ts'
import { makeKeyring, withNewKey } from './keyring.ts'
import { Secrets } from './secrets.ts'
import { loadSigningKeys, type SigningKeys } from './signing-keys.ts'
import { createTokens, type Tokens } from './tokens.ts'

const dayMs = 24 * 3_600_000
const user = { kind: 'user', name: 'a@example.com', admin: true } as const
const bot = { kind: 'serviceaccount', name: 'bot', namespace: 'svc-default', uid: 'u' } as const
const clock = { nowMs: 0, now: () => new Date(clock.nowMs) }
let store: Store
let collections: Collections
let secrets: Secrets
/** Two servers on one store. */
let keys: SigningKeys[]
let tokens: Tokens[]
beforeEach(async () => {
  clock.nowMs = Date.parse('2026-11-15T09:00:00Z')
  store = openMemory()
  collections = await openCollections(store)
  secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const load = (): Promise<SigningKeys> => loadSigningKeys(collections.signingKeys, secrets, clock)
  keys = await Promise.all([load(), load()])
  tokens = keys.map((each) => createTokens(each, clock, () => true))
})
afterEach(async () => {
  for (const each of keys) each[Symbol.dispose]()
  await collections[Symbol.asyncDispose]()
  await store.close()
})

const [a, b] = [0, 1]
const keysOf = (server: number): SigningKeys => keys[server] as SigningKeys
const tokensOf = (server: number): Tokens => tokens[server] as Tokens
const required = <T>(value: T | undefined): T => {
  assert.ok(value)
  return value
}
const kids = (): string[] =>
  collections.signingKeys.list().flatMap(({ value }) => (value.use === 'derive' ? [] : value.kid))

describe('signing keys', () => {
  it('signing keys are the same on servers that start together', () => {
    assert.equal(keysOf(a).active.kid, keysOf(b).active.kid)
    assert.deepEqual(keysOf(a).derive('x'), keysOf(b).derive('x'))
    assert.equal(kids().length, 1)
  })

  it('signing keys are published a minute before they sign, and other servers follow without a restart', async () => {
    const before = keysOf(a).active.kid
    const old = await tokensOf(a).issue(user)
    const { kid } = await keysOf(a).rotate()
    assert.deepEqual([keysOf(a).active.kid, keysOf(b).active.kid], [before, before])
    assert.ok(keysOf(b).publicKey(kid), 'the other one would take its tokens already')
    clock.nowMs += 61_000
    assert.deepEqual([keysOf(a).active.kid, keysOf(b).active.kid], [kid, kid])
    const { token } = await tokensOf(b).issue(user)
    assert.deepEqual(await tokensOf(a).verify(token), user)
    assert.deepEqual(await tokensOf(b).verify(old.token), user)
  })

  it('signing keys are kept until their last token has expired', async () => {
    const derived = keysOf(a).derive('x')
    const { token } = await tokensOf(a).issue(bot, (60 * dayMs) / 1_000)
    const first = keysOf(a).active.kid
    const { kid } = await keysOf(b).rotate()
    clock.nowMs += 59 * dayMs
    await keysOf(b).maintain()
    assert.ok(kids().includes(first))
    assert.deepEqual(await tokensOf(b).verify(token), bot)
    // The end of its tokens is noted with slack.
    clock.nowMs += 40 * dayMs
    await keysOf(b).maintain()
    assert.ok(!kids().includes(first), 'the first one is gone')
    assert.ok(kids().includes(kid))
    assert.deepEqual(keysOf(a).derive('x'), derived)
    const again = await loadSigningKeys(collections.signingKeys, secrets, clock)
    assert.deepEqual(again.derive('x'), derived)
    again[Symbol.dispose]()
  })

  it('signing keys of short-lived tokens are deleted after a day, those of tokens without expiry never', async () => {
    await tokensOf(a).issue(user)
    const first = keysOf(a).active.kid
    await keysOf(a).rotate()
    clock.nowMs += dayMs / 2
    const { token } = await tokensOf(b).issue(bot, null)
    await keysOf(a).maintain()
    assert.ok(kids().includes(first))
    const second = keysOf(a).active.kid
    await keysOf(a).rotate()
    clock.nowMs += 2 * dayMs
    await keysOf(a).maintain()
    assert.ok(!kids().includes(first))
    clock.nowMs += 80 * dayMs
    await keysOf(a).maintain()
    assert.ok(kids().includes(second))
    assert.deepEqual(await tokensOf(a).verify(token), bot)
  })

  it('signing keys are rotated every 90 days', async () => {
    clock.nowMs += 89 * dayMs
    await keysOf(a).maintain()
    assert.equal(kids().length, 1)
    clock.nowMs += 2 * dayMs
    await keysOf(a).maintain()
    await keysOf(a).maintain()
    assert.equal(kids().length, 2)
  })

  it('a revocation ends all tokens on all servers, also cached ones', async () => {
    const { token } = await tokensOf(a).issue(bot, null)
    for (const server of [a, b]) assert.deepEqual(await tokensOf(server).verify(token), bot)
    const { revoked } = await keysOf(a).rotate({ isRevoking: true })
    assert.equal(revoked, 1)
    for (const server of [a, b]) {
      assert.equal(tokensOf(server).known(token), undefined)
      assert.equal(await tokensOf(server).verify(token), undefined)
      assert.ok(await tokensOf(1 - server).verify((await tokensOf(server).issue(user)).token))
    }
  })

  it('derived secrets do not depend on signing keys, and a revocation changes them on every server', async () => {
    const follows = (pem: string): Buffer =>
      Buffer.from(hkdfSync('sha256', createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' }), '', 'svc3 x', 32))
    const before = keysOf(a).derive('x')
    assert.notDeepEqual(before, follows(keysOf(a).active.pem))
    await keysOf(a).rotate()
    assert.deepEqual([keysOf(a).derive('x'), keysOf(b).derive('x')], [before, before])
    // Old data have a copy of the first signing key here.
    const copied = keysOf(a).active.pem
    const { key } = required(collections.signingKeys.get('', 'derive'))
    const fields = { kid: 'copy', createdAt: '2026-11-15T09:00:00Z', use: 'derive' } as const
    await secrets.sealing((protect) =>
      collections.signingKeys.update(required(collections.signingKeys.get('', 'derive')), protect(key, fields, copied)),
    )
    assert.deepEqual([keysOf(a).derive('x'), keysOf(b).derive('x')], [follows(copied), follows(copied)])
    await Promise.all([keysOf(a), keysOf(b)].map((each) => each.rotate({ isRevoking: true })))
    assert.notDeepEqual(keysOf(a).derive('x'), follows(copied))
    assert.notDeepEqual(keysOf(a).derive('x'), before)
    assert.deepEqual(keysOf(b).derive('x'), keysOf(a).derive('x'))
    const again = await loadSigningKeys(collections.signingKeys, secrets, clock)
    assert.deepEqual(again.derive('x'), keysOf(a).derive('x'))
    again[Symbol.dispose]()
  })

  it('signing keys with an unknown master key are reported, and known ones stay in use', async () => {
    const failed: string[] = []
    const other = await loadSigningKeys(collections.signingKeys, new Secrets(secrets.ring), clock, (key) =>
      failed.push(key),
    )
    const { kid } = other.active
    await secrets.use(withNewKey(secrets.ring))
    await secrets.reseal(collections.signingKeys)
    assert.deepEqual(failed.slice(0, 1), ['/signing-keys/first'])
    assert.equal(other.active.kid, kid)
    assert.ok(other.publicKey(kid))
    other[Symbol.dispose]()
  })
})
