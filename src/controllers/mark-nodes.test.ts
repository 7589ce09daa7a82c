// When a node counts as lost: after a while without a stream, and after a start not while others still come back.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SeenNodes } from './mark-nodes.ts'

describe('nodes that were seen', () => {
  it('a node is lost after its stream was gone for longer than the patience', () => {
    const seen = new SeenNodes(0, 40_000)
    seen.note('a', 5_000)
    assert.deepEqual(
      [45_000, 45_001].map((ms) => seen.isLost('a', ms, 1)),
      [false, true],
    )
  })

  it('a node that never came is lost after the patience, counted from the last one that came', () => {
    const seen = new SeenNodes(0, 40_000)
    for (let n = 0; n < 9_000; n++) seen.note(`n-${n}`, n * 10)
    assert.equal(seen.isLost('late', 129_000, 10_000), false)
    assert.equal(seen.isLost('late', 130_000, 10_000), true)
    // It was seen before: that it is still there says nothing of the others.
    seen.note('n-1', 120_000)
    assert.equal(seen.isLost('late', 130_000, 10_000), true)
  })

  it('nodes that go on joining do not keep one that is gone from being lost', () => {
    const seen = new SeenNodes(0, 40_000)
    for (let n = 0; n < 50; n++) seen.note(`new-${n}`, n * 30_000)
    assert.deepEqual(
      [41_000, 41_001].map((ms) => seen.isLost('gone', ms, 50)),
      [false, true],
    )
  })
})
