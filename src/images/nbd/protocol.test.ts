// The server's side of NBD: what QEMU says, what anybody else may say, and that it costs what it is long.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { maxReadBytes, type NbdAction, NbdSession, readReply } from './protocol.ts'

const optionMagic = 0x49484156454f5054n
const diskBytes = 10 * 2 ** 20

function option(kind: number, data = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(16)
  head.writeBigUInt64BE(optionMagic, 0)
  head.writeUInt32BE(kind, 8)
  head.writeUInt32BE(data.length, 12)
  return Buffer.concat([head, data])
}

function request(kind: number, cookie: bigint, offset: bigint, length: number): Buffer {
  const bytes = Buffer.alloc(28)
  bytes.writeUInt32BE(0x25609513, 0)
  bytes.writeUInt16BE(kind, 6)
  bytes.writeBigUInt64BE(cookie, 8)
  bytes.writeBigUInt64BE(offset, 16)
  bytes.writeUInt32BE(length, 24)
  return bytes
}

const clientFlags = Buffer.from([0, 0, 0, 3])
/** An empty name, and a request for one kind of information. */
const go = option(7, Buffer.from([0, 0, 0, 0, 0, 1, 0, 3]))
const steps = (session: NbdSession, ...pieces: Buffer[]): NbdAction[] =>
  pieces.flatMap((piece) => [...session.take(piece)])
const opened = (): NbdSession => {
  const session = new NbdSession(diskBytes)
  steps(session, clientFlags, go)
  return session
}

describe('NBD, as the server of one disk', () => {
  it('names size, read-only and the longest read, then takes reads', () => {
    const session = new NbdSession(diskBytes)
    const [exported, sizes, ack] = steps(session, clientFlags, go)
    assert.ok(exported?.kind === 'send' && sizes?.kind === 'send' && ack?.kind === 'send')
    assert.equal(exported.bytes.readBigUInt64BE(22), BigInt(diskBytes))
    assert.equal(exported.bytes.readUInt16BE(30) & 2, 2)
    assert.equal(sizes.bytes.readUInt32BE(30), maxReadBytes)
    assert.equal(ack.bytes.readUInt32BE(12), 1)
    assert.deepEqual(steps(session, request(0, 7n, 4_096n, 512)), [
      { kind: 'read', cookie: 7n, offset: 4_096, length: 512 },
    ])
  })

  it('declines unknown options, and continues', () => {
    const session = new NbdSession(diskBytes)
    const [structured] = steps(session, clientFlags, option(8))
    assert.ok(structured?.kind === 'send')
    assert.equal(structured.bytes.readUInt32BE(12), 0x8000_0001)
    assert.equal(steps(session, go).length, 3)
  })

  it('refuses reads outside of the disk, of nothing, and of too much', () => {
    const session = opened()
    for (const [offset, length] of [
      [BigInt(diskBytes), 1],
      [2n ** 64n - 1n, 1],
      [0n, 0],
      [0n, maxReadBytes + 1],
    ] as const) {
      const [refused] = steps(session, request(0, 9n, offset, length))
      assert.deepEqual(refused, { kind: 'send', bytes: readReply(9n, 'invalid') })
    }
  })

  it('hangs up on a write, and listens no more after the end', () => {
    const session = opened()
    assert.deepEqual(
      steps(session, request(1, 1n, 0n, 4)).map(({ kind }) => kind),
      ['end'],
    )
    assert.deepEqual(steps(session, request(0, 1n, 0n, 4)), [])
  })

  it('finds the same steps however the bytes are cut', () => {
    const all = Buffer.concat([clientFlags, option(8), go, request(0, 1n, 0n, 512), request(3, 2n, 0n, 0)])
    const whole = steps(new NbdSession(diskBytes), all)
    assert.equal(whole.length, 6)
    fc.assert(
      fc.property(fc.array(fc.nat(all.length), { maxLength: 40 }), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), all.length]
        const pieces = places.slice(1).map((end, index) => all.subarray(places[index], end))
        assert.deepEqual(steps(new NbdSession(diskBytes), ...pieces), whole)
      }),
    )
  })

  it('takes any bytes without throwing, and never reads outside of the disk', () => {
    const part = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
      fc.tuple(fc.nat(12), fc.uint8Array({ maxLength: 40 })).map(([kind, data]) => option(kind, Buffer.from(data))),
      fc
        .tuple(fc.nat(9), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.nat(0xffff_ffff))
        .map(([kind, offset, length]) => request(kind, 1n, offset, length)),
      fc.constantFrom(clientFlags, go),
    )
    fc.assert(
      fc.property(fc.boolean(), fc.array(part, { maxLength: 12 }), (isOpen, parts) => {
        const session = isOpen ? opened() : new NbdSession(diskBytes)
        for (const step of steps(session, ...parts))
          if (step.kind === 'read') assert.ok(step.offset + step.length <= diskBytes && step.length <= maxReadBytes)
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes linear time, also if single bytes arrive', () => {
    const all = Buffer.concat(Array.from({ length: 10_000 }, (_, at) => request(3, BigInt(at), 0n, 0)))
    const session = opened()
    const beganMs = process.cpuUsage().user
    let count = 0
    for (let at = 0; at < all.length; at += 1)
      for (const { kind } of session.take(all.subarray(at, at + 1))) if (kind === 'send') count += 1
    assert.equal(count, 10_000)
    // Were the bytes of before looked at again, this would be minutes.
    assert.ok(process.cpuUsage().user - beganMs < 5_000_000)
  })
})
