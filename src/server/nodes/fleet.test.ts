// Streams to agents: one from which nothing comes is ended, and told apart from one that ended by itself.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { Fleet } from './fleet.ts'

it('a stream that looks open ends when its node is silent for too long', async () => {
  const fleet = new Fleet(20)
  // Its own timer keeps no process alive.
  using _awake = setInterval(() => undefined, 1_000)
  const told: unknown[] = []
  fleet.subscribe((node, isOpen, silentMs) => told.push([node, isOpen, silentMs !== undefined && silentMs > 20]))
  const hold = new AbortController()
  for await (const _ of fleet.stream('quiet', () => ({ type: 'PING' }), hold.signal));
  assert.ok(!fleet.isOpen('quiet'))
  const gone = new AbortController()
  for await (const _ of fleet.stream('gone', () => ({ type: 'PING' }), gone.signal)) gone.abort()
  fleet.close()
  assert.deepEqual(told, [
    ['quiet', true, false],
    ['quiet', false, true],
    ['gone', true, false],
    ['gone', false, false],
  ])
})

it('a stream gets a ping when nothing was sent for longer than a heartbeat takes, two looks', async () => {
  const lookMs = 100
  const fleet = new Fleet(60_000, lookMs)
  using _awake = setInterval(() => undefined, 1_000)
  const over = new AbortController()
  const pings = new Map<string, number>()
  const follow = async (node: string): Promise<void> => {
    let sentMs: number | undefined
    for await (const line of fleet.stream(node, () => ({ type: 'PING' }), over.signal)) {
      const quietMs = performance.now() - (sentMs ?? Number.NEGATIVE_INFINITY)
      sentMs = performance.now()
      if (!String(line).includes('PING')) continue
      // A line may be read later than it was sent.
      assert.ok(quietMs >= 1.5 * lookMs, `a ping to the ${node} node, ${quietMs} ms after another line`)
      pings.set(node, (pings.get(node) ?? 0) + 1)
    }
  }
  const following = [follow('quiet'), follow('busy')]
  using _answers = setInterval(() => fleet.sendCache('busy', { images: [], drops: [] }), 2 * lookMs)
  await eventually(() => assert.ok((pings.get('quiet') ?? 0) > 3))
  over.abort()
  fleet.close()
  await Promise.all(following)
})
