// A value that was written is given back as JSON would read it, whatever it was made of.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readBack } from './json.ts'
import type { Json } from './store.ts'

function check(value: unknown): void {
  const text = JSON.stringify(value)
  assert.deepStrictEqual(readBack(value as Json, text), JSON.parse(text))
  assert.equal(JSON.stringify(readBack(value as Json, text)), text, 'also in the same order')
}

test('reading back gives what parsing gives', () => {
  const cases: readonly unknown[] = [
    null,
    'text with \ud800 half a pair',
    -0,
    [Number.NaN, Number.POSITIVE_INFINITY, -0, undefined, () => 1],
    { left: undefined, out: () => 1, kept: null, 2: 'b', 1: 'a' },
    JSON.parse('{"a":{"__proto__":{"b":1}}}'),
    { when: new Date(0), bytes: new Uint8Array(2), text: new String('boxed'), map: new Map([[1, 2]]) },
    { toJSON: () => ({ other: 1 }) },
    [Object.assign([1], { toJSON: () => 'list' })],
    Object.assign(Object.create({ inherited: 1 }), { own: 1 }),
    Object.assign(Object.create(null), { bare: 1 }),
    new Array(3),
  ]
  for (const value of cases) check(value)
  fc.assert(fc.property(fc.jsonValue(), check))
  fc.assert(fc.property(fc.object(), check))
})

test('what is given back is not what was given: altering one leaves the other', () => {
  const given = { labels: { a: 'b' }, list: [{ n: 1 }] }
  const back = readBack(given, JSON.stringify(given))
  given.labels.a = 'changed'
  given.list.push({ n: 2 })
  assert.deepEqual(back, { labels: { a: 'b' }, list: [{ n: 1 }] })
})
