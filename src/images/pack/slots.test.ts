// Memory that is used again: never more of it than was allowed, none twice at a time.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSlots } from './slots.ts'

describe('slots', () => {
  it('hands out so many, and lets others wait', async () => {
    const slots = createSlots(2)
    const [first, second] = [await slots.take(), await slots.take()]
    assert.notEqual(first.buffer, second.buffer)
    const third = slots.take()
    slots.give(first)
    assert.equal(await third, first)
    slots.give(second)
    assert.equal(await slots.take(), second)
  })

  it('takes again what it let go a while ago, as long as it is there', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const slots = createSlots(1)
    const first = await slots.take()
    slots.give(first)
    t.mock.timers.tick(60_000)
    assert.equal(await slots.take(), first)
    const waiting = slots.take()
    slots.give(first)
    assert.equal(await waiting, first)
  })
})
