// Streams to agents: one from which nothing comes is ended, and told apart from one that ended by itself.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Fleet } from './fleet.ts'

it('a stream that looks open ends when its node is silent for too long', async () => {
  const fleet = new Fleet(20)
  // Its own timer keeps no process alive.
  using _awake = setInterval(() => undefined, 1_000)
  const told: unknown[] = []
  fleet.subscribe((...words) => told.push(words))
  const hold = new AbortController()
  for await (const _ of fleet.open('quiet', () => ({ type: 'PING' }), hold.signal));
  assert.ok(!fleet.isOpen('quiet'))
  const gone = new AbortController()
  for await (const _ of fleet.open('gone', () => ({ type: 'PING' }), gone.signal)) gone.abort()
  fleet.close()
  assert.deepEqual(told, [
    ['quiet', true, false],
    ['quiet', false, true],
    ['gone', true, false],
    ['gone', false, false],
  ])
})
