// Buffers that are used again: never more of them than was allowed, none twice at a time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBufferPool } from './buffer-pool.ts'

describe('a buffer pool', () => {
  it('a buffer pool hands out so many buffers, and lets others wait', async () => {
    const pool = createBufferPool(2)
    const [first, second] = [await pool.take(), await pool.take()]
    assert.notEqual(first.buffer, second.buffer)
    const third = pool.take()
    pool.give(first)
    assert.equal(await third, first)
    pool.give(second)
    assert.equal(await pool.take(), second)
  })

  it('a buffer pool frees idle buffers, and never exceeds its limit', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const pool = createBufferPool(1)
    const first = await pool.take()
    pool.give(first)
    t.mock.timers.tick(60_000)
    const second = await pool.take()
    assert.notEqual(second.buffer, first.buffer)
    const waiting = pool.take()
    pool.give(second)
    assert.equal(await waiting, second)
  })
})
