// What is remembered of how much registries take at once: the least that worked, of a bounded number, and not for ever.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createPieceSizes } from './piece-sizes.ts'

it('the least that worked is remembered for each registry, for an hour', () => {
  let nowMs = 0
  const sizes = createPieceSizes(() => nowMs)
  assert.equal(sizes.of('https://a'), undefined)
  sizes.learn('https://a', 500)
  sizes.learn('https://a', 600)
  sizes.learn('https://b', 700)
  assert.deepEqual([sizes.of('https://a'), sizes.of('https://b')], [500, 700])
  nowMs = 3_599_999
  assert.equal(sizes.of('https://a'), 500)
  nowMs = 3_600_000
  assert.equal(sizes.of('https://a'), undefined)
  sizes.learn('https://a', 900)
  assert.equal(sizes.of('https://a'), 900, 'what was forgotten does not count')
})

it('the registry that was learnt of longest ago makes room', () => {
  const sizes = createPieceSizes()
  for (let index = 0; index < 100; index += 1) sizes.learn(`https://${index}`, index + 1)
  sizes.learn('https://0', 1)
  sizes.learn('https://new', 7)
  assert.deepEqual(
    ['new', '0', '1', '2'].map((host) => sizes.of(`https://${host}`)),
    [7, 1, undefined, 3],
  )
})
