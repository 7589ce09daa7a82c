// Request bodies in protobuf: valid and invalid ones.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeProtobuf } from './protobuf.ts'

const bytesOf = (number: number, value: Buffer | string): Buffer => {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([Buffer.from([...length(number * 8 + 2), ...length(bytes.length)]), bytes])
}
function length(size: number): number[] {
  const bytes = []
  for (let left = size; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left]
    bytes.push((left % 128) | 0x80)
  }
}
const envelope = (apiVersion: string, kind: string, raw: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    bytesOf(1, Buffer.concat([bytesOf(1, apiVersion), bytesOf(2, kind)])),
    bytesOf(2, raw),
  ])

describe('request bodies in protobuf', () => {
  it('an access review and delete options decode to their JSON', () => {
    const attributes = Buffer.concat([bytesOf(1, 'orka-default'), bytesOf(2, 'create'), bytesOf(5, 'pods')])
    const review = envelope('authorization.k8s.io/v1', 'SelfSubjectAccessReview', bytesOf(2, bytesOf(1, attributes)))
    assert.deepEqual(decodeProtobuf(review), {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace: 'orka-default', verb: 'create', resource: 'pods' } },
    })
    const options = Buffer.concat([Buffer.from([8, 30]), bytesOf(2, bytesOf(1, 'u-1')), bytesOf(5, 'All')])
    assert.deepEqual(decodeProtobuf(envelope('v1', 'DeleteOptions', options)), {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 30,
      preconditions: { uid: 'u-1' },
      dryRun: ['All'],
    })
  })

  it('labels are a map, and unknown fields are skipped', () => {
    const label = Buffer.concat([bytesOf(1, 'team'), bytesOf(2, 'ios')])
    const metadata = Buffer.concat([
      bytesOf(1, 'svc-ios'),
      bytesOf(11, label),
      bytesOf(99, 'x'),
      Buffer.from([0x29, ...Buffer.alloc(8)]),
    ])
    assert.deepEqual(decodeProtobuf(envelope('v1', 'Namespace', bytesOf(1, metadata))), {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'svc-ios', labels: { team: 'ios' } },
    })
  })

  it('owner references keep their flags, which an update would remove otherwise', () => {
    const owner = Buffer.concat([bytesOf(1, 'Team'), bytesOf(4, 'u-1'), Buffer.from([0x30, 1, 0x38, 0])])
    const metadata = Buffer.concat([bytesOf(1, 'bot'), bytesOf(13, owner), bytesOf(14, 'a/b')])
    assert.deepEqual(decodeProtobuf(envelope('v1', 'ServiceAccount', bytesOf(1, metadata))).metadata, {
      name: 'bot',
      ownerReferences: [{ kind: 'Team', uid: 'u-1', controller: true, blockOwnerDeletion: false }],
      finalizers: ['a/b'],
    })
  })

  it('other bytes, truncated messages and false lengths are refused', () => {
    const good = envelope('v1', 'Namespace', bytesOf(1, bytesOf(1, 'a')))
    const bad = [
      Buffer.from('{"kind":"Namespace"}'),
      good.subarray(0, good.length - 1),
      Buffer.concat([Buffer.from('k8s\0'), Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x7f])]),
      Buffer.concat([Buffer.from('k8s\0'), Buffer.alloc(11, 0xff)]),
      envelope('v1', 'Namespace', bytesOf(1, bytesOf(1, Buffer.from([0xff, 0xfe])))),
      envelope('v1', 'Namespace', Buffer.from([0x0b])),
    ]
    for (const bytes of bad) assert.throws(() => decodeProtobuf(bytes), { reason: 'BadRequest' })
    const other = envelope('v1', 'Deployment', Buffer.alloc(0))
    assert.throws(() => decodeProtobuf(other), { reason: 'UnsupportedMediaType' })
  })
})
