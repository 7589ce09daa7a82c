// Ranges of sorted keys after random changes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareKeys } from './keys.ts'
import { SortedKeys } from './sorted-keys.ts'

/** Above U+D7FF the order of UTF-8 bytes differs from that of strings. */
const edges = fc.constantFrom('\ud7ff', '\ue000', '\uffff', '😀', '\u{10ffff}', '/', '0', 'a')
const someText = fc.oneof(
  fc.array(edges, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', minLength: 1 }),
)
/** Few enough that keys repeat. */
const someKey = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.nat(2_999).map((n) => `/a/${String(n).padStart(4, '0')}`),
  },
  { weight: 1, arbitrary: someText },
)
/** Many neighbouring keys. */
const someStep = fc.record({ isAdded: fc.boolean(), key: someKey, many: fc.constantFrom(1, 1, 700) })
const someRange = fc.record({
  prefix: fc.oneof(fc.constantFrom('', '/', '/a/', '/a/1'), someText),
  after: fc.option(someKey, { nil: undefined }),
  limit: fc.constantFrom(1, 10, 600, undefined),
})

/** A key and the numbered ones after it. */
const from = (key: string, many: number): string[] =>
  Array.from({ length: many }, (_, n) => key.replace(/\d{4}$/, (first) => String(Number(first) + n).padStart(4, '0')))

function rangeOf(sorted: readonly string[], prefix: string, after = '', limit = Number.POSITIVE_INFINITY): string[] {
  return sorted.filter((key) => key.startsWith(prefix) && compareKeys(key, after) > 0).slice(0, limit)
}

describe('sorted keys', () => {
  it('return the ranges of a sorted array after any changes', () => {
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
        const sorted = [...all].sort(compareKeys)
        assert.deepEqual(keys.range(''), sorted)
        for (const { prefix, after, limit } of ranges)
          assert.deepEqual(keys.range(prefix, after, limit), rangeOf(sorted, prefix, after, limit))
      }),
      { numRuns: 60 },
    )
  })
})
