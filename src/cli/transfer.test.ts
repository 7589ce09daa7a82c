// What a transfer says of itself.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stepOf } from './transfer.ts'

const gibi = 2 ** 30

describe('a transfer', () => {
  it('tells bytes, rate and time left', () => {
    const step = stepOf({ bytes: gibi, totalBytes: 4 * gibi, startBytes: 0, seconds: 10 })
    assert.deepEqual(step, { text: '1.0G of 4.0G, 102M/s, 30 s left', percent: 25 })
  })

  it('counts only what has come since it began', () => {
    const step = stepOf({ bytes: 3 * gibi, totalBytes: 4 * gibi, startBytes: 2 * gibi, seconds: 100 })
    assert.deepEqual(step, { text: '3.0G of 4.0G, 10M/s, 2 min left', percent: 75 })
  })

  it('promises nothing while nothing has come', () => {
    assert.equal(stepOf({ bytes: 0, totalBytes: gibi, startBytes: 0, seconds: 5 }).text, '0 of 1.0G, 0/s')
  })
})
