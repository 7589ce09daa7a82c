// What a store makes of a value is what reading its JSON back gives.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { readBack } from './json.ts'

const back = (value: unknown): unknown => readBack(value, JSON.stringify(value) ?? 'null')

describe('values of a store', () => {
  it('a value that was stored is what reading its JSON back gives, whatever it was', () => {
    const anything = fc.anything({
      withDate: true,
      withNullPrototype: true,
      withSparseArray: true,
      withMap: true,
      withTypedArray: true,
      withUnicodeString: true,
    } as fc.ObjectConstraints)
    fc.assert(
      fc.property(anything, (value) => {
        assert.deepStrictEqual(back(value), JSON.parse(JSON.stringify(value) ?? 'null'))
      }),
      { numRuns: 2_000 },
    )
  })

  it('a value that JSON says in full is stored without being read back', () => {
    for (const value of [{ a: [1, 'two', { three: null }], b: true }, [], {}, '\ud800', 0])
      assert.equal(back(value), value)
  })

  it('what JSON leaves out or changes is not in a value that was stored', () => {
    const changed: readonly unknown[] = [
      { a: undefined },
      { a: { b: undefined } },
      [undefined],
      new Array(2),
      { a: -0 },
      { a: Number.NaN },
      { a: new Date(0) },
      { a: Object.create(null) },
      { toJSON: () => 1 },
      { a: () => 1 },
      Object.create({ inherited: 1 }),
      new (class extends Array {})(),
      new Map([[1, 2]]),
      { get a() { return undefined } },
    ] // biome-ignore format: a list to read
    for (const value of changed) {
      assert.notEqual(back(value), value)
      assert.deepStrictEqual(back(value), JSON.parse(JSON.stringify(value)))
    }
  })
})
