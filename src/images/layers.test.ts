// The arithmetic of layers against a plain picture of the disk, and the rule for folding.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { firstBeyond, neededZeros, resolveLayers } from './format/extents.ts'
import type { Chunk, Extent, Layer } from './format/format.ts'
import { blockBytes, maxLayers } from './format/format.ts'
import { maxLayersKept, planFold, weigh } from './pack/fold.ts'

const blocks = 24
let nextChunk = 0

/** From a picture (for each block data, zeros or nothing) to a layer whose chunks hold up to three blocks. */
function layerOf(picture: readonly ('data' | 'zero' | 'none')[], storedPerBlock = 100): Layer {
  const chunks: Chunk[] = []
  const zeros: Extent[] = []
  const extents = picture.flatMap((kind, at) => (kind === 'data' ? [[at * blockBytes, blockBytes] as const] : []))
  for (let at = 0; at < extents.length; at += 3) {
    const own = extents.slice(at, at + 3)
    nextChunk += 1
    chunks.push({
      digest: `sha256:${nextChunk.toString(16).padStart(64, '0')}`,
      storedBytes: own.length * storedPerBlock,
      rawBytes: own.length * blockBytes,
      compression: 'zstd',
      extents: own,
    })
  }
  for (const [at, kind] of picture.entries()) if (kind === 'zero') zeros.push([at * blockBytes, blockBytes])
  return { chunks, zeros }
}

/** What each block shows, the slow way: `digest+place in the chunk`, `zero` or nothing. */
function shown(layers: readonly Layer[]): (string | undefined)[] {
  const seen: (string | undefined)[] = Array(blocks).fill(undefined)
  for (const { chunks, zeros = [] } of layers) {
    for (const [offset, length] of zeros) seen.fill('zero', offset / blockBytes, (offset + length) / blockBytes)
    for (const { digest, extents } of chunks) {
      let at = 0
      for (const [offset, length] of extents) {
        for (let done = 0; done < length; done += blockBytes) {
          seen[(offset + done) / blockBytes] = `${digest}+${at + done}`
        }
        at += length
      }
    }
  }
  return seen
}

const kind = fc.constantFrom('data', 'zero', 'none', 'none')
const stack = fc.array(
  fc.array(kind, { minLength: blocks, maxLength: blocks }).map((picture) => layerOf(picture)),
  {
    maxLength: 6,
  },
)

describe('layers over each other', () => {
  it('layers show the data of the last layer that has some', () => {
    fc.assert(
      fc.property(stack, (layers) => {
        const seen: (string | undefined)[] = Array(blocks).fill(undefined)
        let end = 0
        for (const { offset, length, chunk, at } of resolveLayers(layers)) {
          assert.ok(offset >= end && length > 0)
          end = offset + length
          for (let done = 0; done < length; done += blockBytes) {
            seen[(offset + done) / blockBytes] = chunk ? `${chunk.digest}+${at + done}` : 'zero'
          }
        }
        assert.deepEqual(seen, shown(layers))
      }),
    )
  })

  it('layers over each other need zeros only over data', () => {
    fc.assert(
      fc.property(stack, fc.array(kind, { minLength: blocks, maxLength: blocks }), (below, picture) => {
        const { zeros = [] } = layerOf(picture)
        const data = shown(below).map((seen) => seen !== undefined && seen !== 'zero')
        const needed = new Set(neededZeros(zeros, below).flatMap(([offset, length]) =>
          Array.from({ length: length / blockBytes }, (_, at) => offset / blockBytes + at))) // biome-ignore format: one thing
        for (const [at, what] of picture.entries()) assert.equal(needed.has(at), what === 'zero' && data[at] === true)
      }),
    )
  })

  it('layers over each other are found by place', () => {
    fc.assert(
      fc.property(stack, fc.nat(blocks * blockBytes), (layers, place) => {
        const segments = resolveLayers(layers)
        const slow = segments.findIndex(({ offset, length }) => offset + length > place)
        assert.equal(firstBeyond(segments, place), slow === -1 ? segments.length : slow)
      }),
    )
  })
})

describe('folding', () => {
  const whole = (from: number, to: number, stored?: number) =>
    layerOf(
      Array.from({ length: blocks }, (_, at) => (at >= from && at < to ? 'data' : 'none')),
      stored,
    )

  it('folding leaves layers that hide nothing, or less than they keep', () => {
    assert.equal(planFold([]), undefined)
    assert.equal(planFold([whole(0, 20)]), undefined)
    assert.equal(planFold([whole(0, 20), whole(20, 24)]), undefined)
    assert.equal(planFold([whole(0, 20), whole(0, 3)]), undefined)
  })

  it('folding compares the hidden bytes with those to write', () => {
    assert.deepEqual(weigh([whole(0, 6), whole(3, 9)]), { writtenBytes: 900, gainedBytes: 300 })
  })

  it('folding folds the deltas, not the disk below, where only they hide each other', () => {
    assert.equal(planFold([whole(0, 24), whole(0, 3), whole(0, 3)]), 1)
    assert.equal(planFold([whole(0, 24), whole(0, 3), whole(10, 13), whole(10, 13), whole(10, 13)]), 2)
  })

  it('folding folds everything where the whole disk was written again', () => {
    assert.equal(planFold([whole(0, 24), whole(0, 24)]), 0)
  })

  it('folding leaves missing content alone, unless the manifest has too many layers', () => {
    const [disk, below, above] = [whole(0, 24), whole(0, 3), whole(0, 3)]
    const lacking =
      (...layers: Layer[]) =>
      (chunk: Chunk) =>
        !layers.some(({ chunks }) => chunks.includes(chunk))
    assert.equal(planFold([disk, below, above], lacking(disk)), 1)
    assert.equal(planFold([disk, below, above], lacking(disk, above)), undefined)
    // What is hidden is not read.
    assert.equal(planFold([disk, below, above], lacking(disk, below)), 1)
    const many = Array.from({ length: maxLayers / 2 + 1 }, (_, at) => whole(at % blocks, (at % blocks) + 1))
    assert.equal(planFold(many.slice(1), lacking(...many)), undefined)
    assert.notEqual(planFold(many, lacking(...many)), undefined)
  })

  it('folding folds when there are too many', () => {
    const many = Array.from({ length: maxLayersKept + 1 }, (_, at) => whole(at, at + 1))
    assert.equal(planFold(many.slice(1)), undefined)
    assert.notEqual(planFold(many), undefined)
  })
})
