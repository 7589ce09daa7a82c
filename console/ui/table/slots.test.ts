// Rows of a long table keep their elements while it is scrolled, and a focused element is not reused for another row.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { inRowOrder, reassigned, type Slot } from './slots.ts'

const keysOf = (slots: readonly Slot[]): string[] => slots.map(({ key }) => key)

describe('elements of a long table', () => {
  it('elements of rows that scrolled out are reused for new rows without moving', () => {
    const first = reassigned([], ['a', 'b', 'c', 'd'], undefined)
    const next = reassigned(first, ['c', 'd', 'e', 'f'], undefined)
    assert.deepEqual(keysOf(next), ['e', 'f', 'c', 'd'])
    assert.deepEqual(
      next.map(({ id }) => id),
      first.map(({ id }) => id),
    )
    assert.deepEqual(keysOf(inRowOrder(next, ['c', 'd', 'e', 'f'])), ['c', 'd', 'e', 'f'])
  })

  it('an element with the keyboard focus is not reused', () => {
    const first = reassigned([], ['a', 'b'], undefined)
    const [a, b] = first
    const next = reassigned(first, ['c', 'd'], a?.id)
    assert.deepEqual(keysOf(next).sort(), ['c', 'd'])
    assert.equal(
      next.find(({ id }) => id === a?.id),
      undefined,
    )
    assert.ok(next.some(({ id }) => id === b?.id))
  })

  it('every drawn row keeps its element', () => {
    const rows = fc.uniqueArray(fc.stringMatching(/^[a-f][0-9]?$/), { maxLength: 12 })
    const property = fc.property(
      fc.array(rows, { maxLength: 6 }),
      fc.option(fc.nat(12), { nil: undefined }),
      (steps, kept) => {
        let before: readonly Slot[] = []
        for (const keys of steps) {
          const slots = reassigned(before, keys, kept)
          assert.deepEqual(keysOf(slots).sort(), [...keys].sort())
          assert.equal(new Set(slots.map(({ id }) => id)).size, slots.length)
          for (const { id, key } of before) {
            const now = slots.find((slot) => slot.key === key)
            if (now) assert.equal(now.id, id)
            else if (id === kept) assert.ok(slots.every((slot) => slot.id !== id))
          }
          assert.deepEqual(keysOf(inRowOrder(slots, keys)), keys)
          before = slots
        }
      },
    )
    fc.assert(property)
  })
})
