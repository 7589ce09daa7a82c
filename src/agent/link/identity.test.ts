// A node replaces its key, authenticated by the old one, whatever messages are lost. Tokens come with a certificate for
// the key, which is never sent.
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { ApiError, type Reason } from '../../api/errors.ts'
import { replaceNodeKey } from '../../api/nodes/node-key.ts'
import type { Client } from '../../client/client.ts'
import { type NodeIdentity, openNodeIdentity } from './identity.ts'
import type { NodeCredentials } from './peer-tls.ts'

let service: TestService
let folder: string
let identity: NodeIdentity
/** Which part of a call is lost, by the operation's id. */
let lose: Readonly<Record<string, 'request' | 'answer'>>
/** All bodies that the agent sent. */
const sent: string[] = []
const { signal } = new AbortController()

/** A stand-in for the service that is called directly. */
const client = {
  baseUrl: 'http://service',
  call: async (
    { id, method, path: where }: { id: string; method: string; path: string },
    { body }: { body: object },
  ) => {
    sent.push(JSON.stringify(body))
    const isSent = lose[id] !== 'request'
    const answer = isSent ? await service.call(method, where, { body, token: null }) : undefined
    if (!answer || lose[id] === 'answer') throw new Error('lost')
    if (answer.status >= 300) throw new ApiError(answer.body.reason as Reason, answer.body.message)
    return answer.body
  },
} as unknown as Client

before(async () => {
  service = await startService()
  // The time in signatures is the host's.
  service.clock.nowMs = Date.now()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-identity-'))
  lose = {}
  identity = await openNodeIdentity(folder, 'node-1')
  const { token } = await service.services.nodeKeys.issueJoinToken('svc-default', 600, 'once')
  await identity.join(client, token, signal)
})
afterEach(async () => {
  const { nodes } = service.services.collections
  for (const entry of nodes.list()) await nodes.delete(entry)
  await fs.rm(folder, { recursive: true, force: true })
})

const file = async () => JSON.parse(await fs.readFile(path.join(folder, 'node.json'), 'utf8'))
const node = () => service.services.collections.nodes.get('', 'node-1')?.value
/** An identity with the keys of the given file. */
const copied = async (): Promise<NodeIdentity> => {
  const copy = await fs.mkdtemp(path.join(folder, 'copy-'))
  await fs.copyFile(path.join(folder, 'node.json'), path.join(copy, 'node.json'))
  return openNodeIdentity(copy, 'node-1')
}

describe("node's key", () => {
  it("a node's key is replaced and the old one refused; the node keeps its uid", async () => {
    const [old, was] = [await copied(), node()]
    await old.issueToken(client, signal)
    await identity.renewKey(client, signal)
    assert.notEqual(node()?.publicKey, was?.publicKey)
    assert.deepEqual({ ...node(), publicKey: '' }, { ...was, publicKey: '' })
    assert.ok((await identity.issueToken(client, signal)).token)
    await assert.rejects(old.issueToken(client, signal), /is not a node with that key/)
    await assert.rejects(old.renewKey(client, signal), /is not a node with that key/)
    const again = await openNodeIdentity(folder, 'node-1')
    assert.ok((await again.issueToken(client, signal)).token)
    assert.equal((await file()).nextKey, undefined)
    const events = JSON.stringify(service.services.collections.events.list())
    assert.match(events, /"ReplaceNodeKey"/)
  })

  for (const lost of ['request', 'answer'] as const)
    it(`a node uses whichever of its two keys is valid when the ${lost} is lost`, async () => {
      lose = { replaceNodeKey: lost }
      await assert.rejects(identity.renewKey(client, signal), /lost/)
      lose = {}
      const next = await openNodeIdentity(folder, 'node-1')
      assert.ok((await next.issueToken(client, signal)).token)
      assert.equal((await file()).nextKey === undefined, lost === 'answer')
      await next.renewKey(client, signal)
      assert.ok((await next.issueToken(client, signal)).token)
      assert.equal((await file()).nextKey, undefined)
    })

  it("a node's key cannot be replaced with a token alone, or with a signature for another key", async () => {
    const was = node()?.publicKey
    const { name, publicKey } = replaceNodeKey.example.body
    const body = { name: 'node-1', at: new Date().toISOString(), publicKey, signature: 'c2lnbmF0dXJl' }
    const ask = (changed: object) =>
      service.call('POST', '/api/v1/agent/key', { body: { ...body, ...changed }, token: null })
    assert.equal((await ask({})).status, 401)
    assert.equal((await ask({ name })).status, 401)
    assert.equal((await ask({ publicKey: 'AAAA' })).status, 422)
    assert.equal(node()?.publicKey, was)
  })
})

describe("node's certificate", () => {
  const held = (): NodeCredentials => {
    assert.ok(identity.credentials)
    return identity.credentials
  }
  const shown = (): X509Certificate => new X509Certificate(held().certificate)
  const fits = (): boolean => shown().checkPrivateKey(createPrivateKey(held().key))
  const nodeKey = () => Buffer.from(node()?.publicKey ?? '', 'base64')
  const keyOf = (certificate: X509Certificate) => certificate.publicKey.export({ type: 'spki', format: 'der' })

  it("a node's certificate for its current key comes with every token", async () => {
    assert.equal(identity.credentials, undefined)
    await identity.issueToken(client, signal)
    const first = shown()
    assert.equal(first.subjectAltName, `URI:svc3://node/${node()?.uid}`)
    assert.ok(keyOf(first).equals(nodeKey()))
    assert.ok(fits())
    assert.ok(first.verify(new X509Certificate(held().authority).publicKey))
    await identity.renewKey(client, signal)
    await identity.issueToken(client, signal)
    assert.ok(!keyOf(first).equals(nodeKey()) && keyOf(shown()).equals(nodeKey()))
    assert.ok(fits())
  })

  it("a node's certificate is for the new key if the answer to its replacement was lost", async () => {
    lose = { replaceNodeKey: 'answer' }
    await assert.rejects(identity.renewKey(client, signal), /lost/)
    await identity.issueToken(client, signal)
    assert.ok(keyOf(shown()).equals(nodeKey()))
    assert.ok(fits())
  })

  it('a removed node gets no certificate', async () => {
    const { nodes } = service.services.collections
    for (const entry of nodes.list()) await nodes.delete(entry)
    await assert.rejects(identity.issueToken(client, signal), /is not a node with that key/)
    assert.equal(identity.credentials, undefined)
  })

  it('a node keeps its certificate and gets a token if a server cannot issue a certificate', async () => {
    await identity.issueToken(client, signal)
    const before = identity.credentials
    const { nodeAuthority } = service.services
    nodeAuthority.certify = async () => undefined
    assert.ok((await identity.issueToken(client, signal)).token)
    assert.equal(identity.credentials, before)
    Reflect.deleteProperty(nodeAuthority, 'certify')
  })

  it('an agent never sends its private key or a part of it', async () => {
    sent.length = 0
    const { privateKey } = await file()
    const { token } = await service.services.nodeKeys.issueJoinToken('svc-default', 600, 'once')
    await identity.join(client, token, signal)
    await identity.issueToken(client, signal)
    await identity.renewKey(client, signal)
    await identity.issueToken(client, signal)
    const said = sent.join('\n')
    assert.equal(sent.length, 4)
    for (const key of [privateKey, (await file()).privateKey]) {
      // The key is the last 32 bytes.
      const secret = Buffer.from(key, 'base64').subarray(-32)
      const pem = createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' })
      const forms = [key, secret.toString('base64'), secret.toString('base64url'), secret.toString('hex')]
      forms.push(pem.export({ type: 'pkcs8', format: 'pem' }).toString().split('\n')[1] ?? '')
      for (const form of forms) assert.ok(form.length > 40 && !said.includes(form))
      assert.ok(!JSON.stringify(service.services.collections.nodes.list()).includes(key))
    }
    assert.ok(!/PRIVATE/.test(said))
  })
})
