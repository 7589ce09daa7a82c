// Ranges are what a sorted array of all keys gives, whatever came and went.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareKeys } from './keys.ts'
import { SortedKeys } from './sorted-keys.ts'

/** Few enough to meet again, some above U+D7FF; so many in one place that runs are split and go. */
const someKey = fc.oneof(
  { weight: 9, arbitrary: fc.nat(2_999).map((n) => `/a/${String(n).padStart(4, '0')}`) },
  { weight: 1, arbitrary: fc.constantFrom('/a', '/b/\u{1f34f}', '/b/\uffee', '/b/x') },
)
const someStep = fc.record({ isAdded: fc.boolean(), key: someKey, many: fc.constantFrom(1, 1, 700) })
const someRange = fc.record({
  prefix: fc.constantFrom('/', '/a/', '/a/1', '/b/', '/c'),
  after: fc.option(someKey, { nil: undefined }),
  limit: fc.constantFrom(1, 10, 600, undefined),
})

/** The key and those that follow by number. */
const from = (key: string, many: number): string[] =>
  Array.from({ length: many }, (_, n) => key.replace(/\d{4}$/, (from) => String(Number(from) + n).padStart(4, '0')))

function rangeOf(keys: ReadonlySet<string>, prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
  const inside = [...keys].filter((key) => key.startsWith(prefix) && compareKeys(key, after) > 0)
  return inside.sort(compareKeys).slice(0, limit)
}

describe('sorted keys', () => {
  it('give the ranges of a sorted array after any keys came and went', () => {
    fc.assert(
      fc.property(fc.array(someKey), fc.array(someStep), fc.array(someRange), (loaded, steps, ranges) => {
        const all = new Set(loaded)
        const keys = new SortedKeys()
        keys.load(all)
        for (const { isAdded, key, many } of steps)
          for (const each of from(key, many)) {
            if (isAdded) keys.add(each)
            else keys.delete(each)
            if (isAdded) all.add(each)
            else all.delete(each)
          }
        assert.equal(keys.size, all.size)
        assert.deepEqual(keys.range(''), rangeOf(all, ''))
        for (const { prefix, after, limit } of ranges)
          assert.deepEqual(keys.range(prefix, after, limit), rangeOf(all, prefix, after, limit))
      }),
      { numRuns: 60 },
    )
  })
})
