// The authority for nodes: shared by all servers, validity and keys of its certificates, and what happens if it cannot be
// created or decrypted.
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { describe, it } from 'node:test'
import { makeKeyring } from '../../auth/keyring.ts'
import { SealError } from '../../auth/seal.ts'
import { Secrets } from '../../auth/secrets.ts'
import { createLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import { StoreError } from '../../store/store.ts'
import { NodeAuthority } from './authority.ts'

const hourMs = 3_600_000
const yearMs = 365 * 24 * hourMs
const keys = generateKeyPairSync('ed25519')
const node = {
  name: 'mini-arm-13',
  uid: '1c1d4a4e-7f2a-4a0f-8d63-0c3d0b7f9a10',
  publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
}

/** Servers that share a store and its keys. */
function cluster() {
  const store = openMemory()
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const clock = { nowMs: Date.parse('2026-11-16T09:00:00Z'), now: () => new Date(clock.nowMs) }
  const logLines: string[] = []
  const log = createLog('debug', (line) => logLines.push(line))
  const server = async () => {
    const collections = await openCollections(store)
    return { collections, authority: new NodeAuthority({ collections, secrets, clock, log }) }
  }
  const certify = async ({ authority }: Awaited<ReturnType<typeof server>>) => {
    const given = await authority.certify(node, new Date(clock.nowMs + hourMs))
    return given && { leaf: new X509Certificate(given.certificate), root: new X509Certificate(given.authority) }
  }
  return { store, secrets, clock, server, certify, logLines }
}

const isVouchedFor = (leaf: X509Certificate | undefined, root: X509Certificate | undefined): boolean =>
  leaf !== undefined && root !== undefined && leaf.checkIssued(root) && leaf.verify(root.publicKey)

describe("a node's certificate", () => {
  it('has the name, uid and key of the node, and is valid an hour longer than its token', async () => {
    const { server, certify, clock } = cluster()
    const { leaf, root } = (await certify(await server())) ?? {}
    assert.ok(leaf && root && isVouchedFor(leaf, root))
    assert.equal(leaf.subject, 'CN=mini-arm-13')
    assert.equal(leaf.subjectAltName, `URI:svc3://node/${node.uid}`)
    assert.ok(leaf.publicKey.equals(keys.publicKey) && leaf.checkPrivateKey(keys.privateKey))
    assert.equal(leaf.validFromDate.getTime(), clock.nowMs - hourMs)
    assert.equal(leaf.validToDate.getTime(), clock.nowMs + 2 * hourMs)
    // Usable for servers and clients, but not for signing.
    assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
    assert.ok(!leaf.ca && root.ca)
    assert.ok(root.validToDate.getTime() - clock.nowMs > 9 * yearMs && root.validFromDate.getTime() < clock.nowMs)
  })

  it('is not accepted by another authority', async () => {
    const [one, other] = [cluster(), cluster()]
    const [mine, theirs] = [await one.certify(await one.server()), await other.certify(await other.server())]
    assert.ok(!isVouchedFor(mine?.leaf, theirs?.root))
  })
})

describe('the authority for nodes', () => {
  it('the authority for nodes is created once, also by concurrent servers, and survives a restart', async () => {
    const { server, certify, logLines } = cluster()
    const servers = [await server(), await server(), await server()]
    const given = await Promise.all(servers.flatMap((each) => [certify(each), certify(each)]))
    const later = await certify(await server())
    assert.equal(new Set([...given, later].map((each) => each?.root.fingerprint256)).size, 1)
    for (const each of given) assert.ok(isVouchedFor(each?.leaf, later?.root))
    const [{ authority }] = servers as [(typeof servers)[0]]
    const { key } = await authority.current()
    assert.ok(!logLines.join('').includes(key.split('\n')[1] ?? '-'))
  })

  it('the authority for nodes is renewed in its last year with the same key: old and new verify the same certificates', async () => {
    const { server, certify, clock, logLines } = cluster()
    const [one, two] = [await server(), await server()]
    const before = await certify(one)
    clock.nowMs += 8.9 * yearMs
    assert.equal((await certify(one))?.root.fingerprint256, before?.root.fingerprint256)
    clock.nowMs += 0.2 * yearMs
    const [after, afterElsewhere] = await Promise.all([certify(one), certify(two)])
    assert.notEqual(after?.root.fingerprint256, before?.root.fingerprint256)
    assert.equal(after?.root.fingerprint256, afterElsewhere?.root.fingerprint256)
    assert.ok(isVouchedFor(after?.leaf, before?.root) && isVouchedFor(before?.leaf, after?.root))
    assert.ok((after?.root.validToDate.getTime() ?? 0) - clock.nowMs > 9 * yearMs)
    assert.match(logLines.join(''), /renewed the certificate authority for nodes/)
  })

  it('the authority for nodes is re-encrypted with the other secrets', async () => {
    const { server, certify, secrets } = cluster()
    const before = await certify(await server())
    const next = makeKeyring([randomBytes(32)])
    await secrets.use({ active: next.active, keys: new Map([...secrets.ring.keys, ...next.keys]) })
    const { collections } = await server()
    assert.deepEqual(await secrets.reseal(collections.certificates), { resealed: 1, refused: [] })
    await secrets.use(next)
    const after = await certify(await server())
    assert.ok(isVouchedFor(after?.leaf, before?.root))
  })

  it('the authority for nodes that was altered is neither used nor replaced, and logged', async () => {
    const { server, certify, store, logLines } = cluster()
    await certify(await server())
    const entry = await store.get('/certificates/node-authority')
    assert.ok(entry && !JSON.stringify(entry.value).includes('PRIVATE'))
    const rev = await store.update(entry.key, { ...(entry.value as object), updatedBy: 'eve' }, entry.rev)
    const other = await server()
    await assert.rejects(other.authority.current(), SealError)
    assert.equal(await certify(other), undefined)
    assert.match(logLines.join(''), /could not issue a node certificate/)
    assert.deepEqual((await store.get(entry.key))?.rev, rev.rev)
  })

  it('the authority for nodes that could not be written is created later', async () => {
    const { server, certify } = cluster()
    const one = await server()
    const { change } = one.collections.certificates
    one.collections.certificates.change = async () => {
      throw new StoreError('Unavailable', 'the disk is full')
    }
    assert.equal(await certify(one), undefined)
    one.collections.certificates.change = change
    const { root } = (await certify(one)) ?? {}
    assert.ok(root && createPublicKey((await one.authority.current()).key).equals(root.publicKey))
  })
})
