// Conclusions from responses of members: a write with the response Unavailable may have been carried out, and calls avoid a
// member without a quorum.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type net from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { bytesField, message, presentNumber } from '../../platform/protobuf.ts'
import type { EtcdCalls } from './calls.ts'
import { EtcdClient, EtcdFailure } from './client.ts'
import { CallFailure } from './connection.ts'
import { recogniseCreate } from './lost-write.ts'
import { type KeyValue, methods } from './protocol.ts'
import { encodeRecord, Layout } from './records.ts'
import { grpc, judge } from './verdict.ts'

interface Asked {
  readonly method: string
  readonly hasLeader: unknown
}

interface Failure {
  readonly code: number
  readonly text: string
}

const cluster = 7
/** The status of a member: a supported version, and which member leads. */
const statusOf = (member: number, leader: number): Buffer =>
  message(
    bytesField(1, message(presentNumber(1, cluster), presentNumber(2, member))),
    bytesField(2, '3.5.24'),
    presentNumber(4, leader),
  )

/** A member that returns its status, and an error for all other calls. */
async function startMember(t: TestContext, failure: Failure, status = () => statusOf(1, 1)) {
  const asked: Asked[] = []
  const server = http2.createServer()
  server.on('stream', (stream, headers) => {
    const method = String(headers[':path'])
    if (method !== methods.status) asked.push({ method, hasLeader: headers.hasleader })
    const head = { ':status': 200, 'content-type': 'application/grpc' } as const
    if (method !== methods.status)
      return stream.respond({ ...head, 'grpc-status': failure.code, 'grpc-message': failure.text }, { endStream: true })
    stream.respond(head, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    const body = status()
    const length = Buffer.alloc(5)
    length.writeUInt32BE(body.length, 1)
    stream.end(Buffer.concat([length, body]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`, asked }
}

function clientOf(t: TestContext, ...endpoints: readonly { readonly url: string }[]): EtcdClient {
  const client = new EtcdClient({ endpoints, notice: () => undefined, timeoutMs: 60_000 })
  t.after(() => client.close())
  return client
}

describe('lost answers', () => {
  const failure = new EtcdFailure('the connection was lost', 0, true)
  const layout = new Layout('x')
  const written = (op: string, createRevision: number, modRevision: number): KeyValue => ({
    key: '/x/data/a',
    value: encodeRecord(Buffer.from('/x/data/a'), op, '1'),
    createRevision,
    modRevision,
  })
  /** The current entry, and the one of revision 7, when it was created. */
  const recognised = (now: KeyValue, then: KeyValue, lost = failure): Promise<number> => {
    const find = async (_: string, revision?: number) =>
      revision === undefined ? now : revision === 7 ? then : undefined
    const create = { key: '/a', op: 'ours', before: 5, failure: lost }
    return recogniseCreate({ layout, find } as unknown as EtcdCalls, create)
  }

  it('a create with a lost answer is recognised with its revision, even if the record was changed since', async () => {
    assert.equal(await recognised(written('theirs', 7, 9), written('ours', 7, 7)), 7)
  })

  it('a create with a lost answer is Unknown if another writer created the record, or if it may be carried out later', async () => {
    await assert.rejects(recognised(written('theirs', 7, 9), written('others', 7, 7)), failure)
    const [there, ours] = [written('theirs', 5, 9), written('ours', 7, 7)]
    await assert.rejects(recognised(there, ours), failure)
    const settled = new EtcdFailure('the member ended', 0, true, true)
    await assert.rejects(recognised(there, ours, settled), { fault: 'AlreadyExists' })
  })
})

describe('calls', () => {
  const write = { isRepeatable: false, tryMs: 60_000 }
  const refused = { code: grpc.permissionDenied, text: 'etcdserver: permission denied' }

  it('a call with the response Unavailable may have been carried out, and is not repeated', async (t) => {
    const member = await startMember(t, { code: grpc.unavailable, text: 'transport is closing' })
    const client = clientOf(t, member)
    await assert.rejects(client.call(methods.txn, Buffer.alloc(0), write), (error) => {
      assert.ok(error instanceof EtcdFailure)
      assert.deepEqual([error.code, error.perhaps], [grpc.unavailable, true])
      return true
    })
    assert.deepEqual(member.asked, [{ method: methods.txn, hasLeader: 'true' }])
  })

  it('a refused call was certainly not carried out', async (t) => {
    const member = await startMember(t, refused)
    const client = clientOf(t, member)
    await assert.rejects(client.call(methods.txn, Buffer.alloc(0), write), { perhaps: false, settled: true })
    assert.equal(member.asked.length, 1)
  })

  it('a call that was refused for lack of space may have been carried out, and is not repeated', async (t) => {
    const text = 'etcdserver: mvcc: database space exceeded'
    const member = await startMember(t, { code: grpc.resourceExhausted, text })
    const client = clientOf(t, member)
    const isRepeatable = true
    const failing = client.call(methods.txn, Buffer.alloc(0), { ...write, isRepeatable })
    await assert.rejects(failing, { perhaps: true, settled: true })
    assert.equal(member.asked.length, 1)
  })

  it('calls go to the leader once it is known, and stay at a member while there is none', async (t) => {
    let leader = 0
    const members = await Promise.all([1, 2, 3].map((id) => startMember(t, refused, () => statusOf(id, leader))))
    const client = clientOf(t, ...members)
    const expected = [0, 0, 0]
    // In one of these rounds the leader is not the first member that is tried.
    for (const leading of [1, 2, 3, 0]) {
      leader = leading
      await client.follow()
      await assert.rejects(client.call(methods.range, Buffer.alloc(0), write), /permission denied/)
      expected[(leading || 3) - 1] = (expected[(leading || 3) - 1] ?? 0) + 1
      assert.deepEqual(
        members.map(({ asked }) => asked.length),
        expected,
      )
    }
  })

  it('a failed call is judged by its response', () => {
    const said = (code: number, text = 'words'): string => judge(new CallFailure('answered', text, code))
    const unclear = [grpc.unavailable, grpc.deadlineExceeded, grpc.cancelled, grpc.unknown, grpc.internal, grpc.aborted]
    for (const code of unclear) assert.equal(said(code), 'unclear', String(code))
    assert.equal(said(grpc.unavailable, 'etcdserver: no leader'), 'elsewhere')
    assert.equal(said(grpc.unauthenticated, 'etcdserver: invalid auth token'), 'login')
    assert.equal(said(grpc.permissionDenied), 'final')
    assert.equal(judge(new CallFailure('unsent', 'words')), 'elsewhere')
    assert.equal(judge(new CallFailure('unclear', 'words')), 'unclear')
  })
})
