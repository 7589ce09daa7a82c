// Keys behind a shim: escaped, and still in the same order below the same prefixes.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import type { KeyValue } from './etcd-protocol.ts'
import { etcdFormat, Layout, seal, shimFormat } from './etcd-records.ts'

const record = { key: '', value: seal('op', '1'), createRevision: 1, modRevision: 1 } satisfies KeyValue

function layoutOf(format: number): Layout {
  const layout = new Layout('p', () => undefined)
  layout.adopt(record, { format, startRev: 0 })
  return layout
}

const text = fc.string({ unit: fc.constantFrom('$', '%', ']', '^', '#', '&', '\\', '_', '1', '2', '/', 'é', '😀') })

it('keys behind a shim mean nothing to LIKE, come back, and keep their order and their prefixes', () => {
  const layout = layoutOf(shimFormat)
  const stored = (key: string): string => layout.key(key).toString()
  fc.assert(
    fc.property(text, text, text, (a, b, rest) => {
      assert.doesNotMatch(stored(a), /[%^]/)
      assert.equal(layout.entry({ ...record, key: stored(a) })?.key, a)
      const bytes = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other))
      assert.equal(bytes(stored(a), stored(b)), bytes(a, b))
      assert.equal(stored(a + rest).startsWith(stored(a)), true)
      assert.equal(layout.prefix(a).isBelow({ ...record, key: stored(b) }), b.startsWith(a))
    }),
  )
})

it('keys in etcd are as they are; a range ends where its folder does', () => {
  const layout = layoutOf(etcdFormat)
  assert.equal(layout.key('/a%b').toString(), '/p/data/a%b')
  const ends = ['/a/', '/a/b', '/a', ''].map((prefix) => layout.prefix(prefix).end.toString())
  assert.deepEqual(ends, ['/p/data/a0', '/p/data/a0', '/p/data0', '/p0'])
})
