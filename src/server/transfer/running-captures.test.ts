// How much of the content of captures has arrived, and for how long it counts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RunningCaptures } from './running-captures.ts'

it('what arrived for a capture counts until it ends, or is silent for so long that its content is deleted', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 0 })
  const captures = new RunningCaptures()
  assert.ok(captures.receives('a', 600, 1_000))
  assert.ok(!captures.receives('a', 600, 1_000))
  assert.ok(captures.receives('b', 600, 1_000))
  captures.ended('a')
  assert.ok(captures.receives('a', 600, 1_000))
  assert.equal(captures.oldestStartMs(), 0)
  t.mock.timers.setTime(4 * 60_000)
  captures.reported('a')
  t.mock.timers.setTime(6 * 60_000)
  assert.equal(captures.oldestStartMs(), 0)
  assert.ok(!captures.receives('a', 600, 1_000))
  assert.ok(captures.receives('b', 600, 1_000), 'b was silent')
})
