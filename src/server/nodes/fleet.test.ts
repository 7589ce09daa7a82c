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
  fleet.subscribe((...words) => told.push(words))
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

it('a quiet stream gets a ping every second look, and one with news gets none', async () => {
  const fleet = new Fleet(60_000, 40)
  using _awake = setInterval(() => undefined, 1_000)
  const over = new AbortController()
  const followed = new Map<string, string[]>()
  const beganMs = performance.now()
  const follow = async (node: string): Promise<string[]> => {
    const lines: string[] = []
    followed.set(node, lines)
    for await (const line of fleet.stream(node, () => ({ type: 'PING' }), over.signal)) lines.push(String(line))
    return lines.slice(1)
  }
  const [quiet, busy] = [follow('quiet'), follow('busy')]
  using _news = setInterval(() => fleet.sendCache('busy', { images: [], drops: [] }), 5)
  await eventually(() => assert.ok((followed.get('quiet')?.length ?? 0) > 3))
  over.abort()
  fleet.close()
  const pings = (await quiet).length
  const looks = (performance.now() - beganMs) / 40
  assert.ok(pings <= looks / 2 + 1, `${pings} pings in ${looks} looks`)
  assert.ok(!(await busy).some((line) => line.includes('PING')))
})
