// A node's key is replaced by another one that the first vouches for; whatever is lost meanwhile, the node gets on.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { startService, type TestService } from '../../test/support/service.ts'
import { ApiError, type Reason } from '../api/errors.ts'
import { replaceNodeKey } from '../api/node-key.ts'
import type { Client } from '../client/client.ts'
import { type Identity, openIdentity } from './identity.ts'

let service: TestService
let folder: string
let identity: Identity
/** What happens to the answer of a call, by the operation's id. */
let lose: Readonly<Record<string, 'request' | 'answer'>>
const { signal } = new AbortController()

/** The service, without a network between. */
const client = {
  baseUrl: 'http://service',
  call: async (
    { id, method, path: where }: { id: string; method: string; path: string },
    { body }: { body: object },
  ) => {
    const isSent = lose[id] !== 'request'
    const answer = isSent ? await service.call(method, where, { body, token: null }) : undefined
    if (!answer || lose[id] === 'answer') throw new Error('lost')
    if (answer.status >= 300) throw new ApiError(answer.body.reason as Reason, answer.body.message)
    return answer.body
  },
} as unknown as Client

before(async () => {
  service = await startService()
  // Signatures are of now, by the clock of the host.
  service.clock.nowMs = Date.now()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-identity-'))
  lose = {}
  identity = await openIdentity(folder, 'node-1')
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
/** As whoever has a copy of the file. */
const copied = async (): Promise<Identity> => {
  const copy = await fs.mkdtemp(path.join(folder, 'copy-'))
  await fs.copyFile(path.join(folder, 'node.json'), path.join(copy, 'node.json'))
  return openIdentity(copy, 'node-1')
}

describe("a node's key", () => {
  it('is replaced, and the old one is refused; the node stays', async () => {
    const [old, was] = [await copied(), node()]
    await old.issueToken(client, signal)
    await identity.renewKey(client, signal)
    assert.notEqual(node()?.publicKey, was?.publicKey)
    assert.deepEqual({ ...node(), publicKey: '' }, { ...was, publicKey: '' })
    assert.ok((await identity.issueToken(client, signal)).token)
    await assert.rejects(old.issueToken(client, signal), /is not a node with that key/)
    await assert.rejects(old.renewKey(client, signal), /is not a node with that key/)
    const again = await openIdentity(folder, 'node-1')
    assert.ok((await again.issueToken(client, signal)).token)
    assert.equal((await file()).nextKey, undefined)
    const events = JSON.stringify(service.services.collections.events.list())
    assert.match(events, /"ReplaceNodeKey"/)
  })

  for (const lost of ['request', 'answer'] as const)
    it(`is one of two when the ${lost} is lost, and the node goes on by whichever it is`, async () => {
      lose = { replaceNodeKey: lost }
      await assert.rejects(identity.renewKey(client, signal), /lost/)
      lose = {}
      const next = await openIdentity(folder, 'node-1')
      assert.ok((await next.issueToken(client, signal)).token)
      assert.equal((await file()).nextKey === undefined, lost === 'answer')
      await next.renewKey(client, signal)
      assert.ok((await next.issueToken(client, signal)).token)
      assert.equal((await file()).nextKey, undefined)
    })

  it('is not replaced by who only has a token, or what was signed for another key', async () => {
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
