// What is concluded from how a member answers: a write that was answered Unavailable may have been carried out, and no member
// is to keep a call for itself that has lost the others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type net from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { EtcdClient, EtcdFailure } from './etcd-client.ts'
import { CallFailure } from './etcd-connection.ts'
import { methods } from './etcd-protocol.ts'
import { grpc, judge } from './etcd-verdict.ts'
import { bytesField, message, messageField, presentNumber } from './etcd-wire.ts'

interface Asked {
  readonly method: string
  readonly hasLeader: unknown
}

/** A member that is of a good version, and answers all else with that error. */
async function startMember(t: TestContext, failure: { readonly code: number; readonly text: string }) {
  const asked: Asked[] = []
  const version = message(messageField(1, message(presentNumber(1, 7))), bytesField(2, '3.5.24'))
  const server = http2.createServer()
  server.on('stream', (stream, headers) => {
    const method = String(headers[':path'])
    asked.push({ method, hasLeader: headers.hasleader })
    const head = { ':status': 200, 'content-type': 'application/grpc' } as const
    if (method !== methods.status)
      return stream.respond({ ...head, 'grpc-status': failure.code, 'grpc-message': failure.text }, { endStream: true })
    stream.respond(head, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    const length = Buffer.alloc(5)
    length.writeUInt32BE(version.length, 1)
    stream.end(Buffer.concat([length, version]))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
  const client = new EtcdClient({ endpoints: [{ url }], notice: () => undefined, patienceMs: 60_000 })
  t.after(() => {
    client.close()
    server.close()
  })
  return { client, asked: () => asked.filter(({ method }) => method !== methods.status) }
}

describe('a call to etcd', () => {
  const write = { isRepeatable: false, tryMs: 60_000 }

  it('that was answered Unavailable may have been carried out, and is not sent again', async (t) => {
    const { client, asked } = await startMember(t, { code: grpc.unavailable, text: 'transport is closing' })
    await assert.rejects(client.call(methods.txn, Buffer.alloc(0), write), (error) => {
      assert.ok(error instanceof EtcdFailure)
      assert.deepEqual([error.code, error.perhaps], [grpc.unavailable, true])
      return true
    })
    assert.deepEqual(asked(), [{ method: methods.txn, hasLeader: 'true' }])
  })

  it('that was refused was surely not carried out', async (t) => {
    const { client, asked } = await startMember(t, {
      code: grpc.permissionDenied,
      text: 'etcdserver: permission denied',
    })
    await assert.rejects(client.call(methods.txn, Buffer.alloc(0), write), { perhaps: false, settled: true })
    assert.equal(asked().length, 1)
  })

  it('that was refused for want of space was carried out or not, and is not sent again', async (t) => {
    const text = 'etcdserver: mvcc: database space exceeded'
    const { client, asked } = await startMember(t, { code: grpc.resourceExhausted, text })
    const isRepeatable = true
    const failing = client.call(methods.txn, Buffer.alloc(0), { ...write, isRepeatable })
    await assert.rejects(failing, { perhaps: true, settled: true })
    assert.equal(asked().length, 1)
  })

  it('is judged by what it was answered', () => {
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
