// Keys are ordered by their UTF-8 bytes, and the end of a prefix follows that order, as in etcd.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Layout } from './etcd/records.ts'
import { compareKeys, prefixEnd } from './keys.ts'

const sign = (n: number): number => Math.sign(n)
const bytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
const edges = fc.constantFrom('\ud7ff', '\ue000', '\uffff', '😀', '\u{10ffff}', '/', '0', 'a')
const text = fc.oneof(
  fc.array(edges, { maxLength: 6 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary' }),
)

test('keys compare as their bytes do', () => {
  fc.assert(
    fc.property(text, text, (a, b) => assert.equal(sign(compareKeys(a, b)), bytes(a, b))),
    { numRuns: 2_000 },
  )
})

test('a prefix ends right after everything that begins with it', () => {
  fc.assert(
    fc.property(text, text, (prefix, other) => {
      const end = prefixEnd(prefix)
      const isWithin = compareKeys(other, prefix) >= 0 && (end === undefined || compareKeys(other, end) < 0)
      assert.equal(isWithin, other.startsWith(prefix))
      assert.ok(end === undefined || compareKeys(prefix + other, end) < 0)
    }),
    { numRuns: 2_000 },
  )
})

test('keys in etcd are as they are, below the data of the prefix; a range holds what begins with it', () => {
  const layout = new Layout('p')
  assert.equal(layout.key('/a%b').toString(), '/p/data/a%b')
  const ends = ['/a/', '/a/b', '/a', ''].map((prefix) => layout.prefix(prefix).end.toString())
  assert.deepEqual(ends, ['/p/data/a0', '/p/data/a/c', '/p/data/b', '/p/datb'])
})
