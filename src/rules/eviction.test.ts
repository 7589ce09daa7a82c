// The order of evictions, and that none happens without success.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chooseEvictions, type Evictable } from './eviction.ts'

const chunks = (key: string, bytes: number, usedMs: number): Evictable => ({ kind: 'chunks', key, bytes, usedMs })
const disk = (key: string, bytes: number, usedMs: number): Evictable => ({ kind: 'disk', key, bytes, usedMs })
const keys = (chosen: readonly Evictable[] | undefined) => chosen?.map(({ kind, key }) => `${kind} ${key}`)

const all = [disk('new', 10, 9), disk('old', 10, 1), chunks('new', 4, 9), chunks('old', 4, 1), chunks('orphan', 4, 0)]

describe('evictions', () => {
  it('evictions take unused chunks first, then chunks of the least recently used copy, and disks last', () => {
    const order = ['chunks orphan', 'chunks old', 'chunks new', 'disk old', 'disk new']
    for (const [bytes, count] of [[1, 1], [4, 1], [5, 2], [12, 3], [13, 4], [32, 5]] as const) // biome-ignore format: a table
      assert.deepEqual(keys(chooseEvictions(all, bytes)), order.slice(0, count))
    assert.deepEqual(chooseEvictions(all, 0), [])
  })

  it('nothing is evicted if that would not be enough', () => {
    assert.equal(chooseEvictions(all, 33), undefined)
    assert.equal(chooseEvictions([], 1), undefined)
    assert.equal(chooseEvictions([disk('empty', 0, 1)], 1), undefined)
  })
})
