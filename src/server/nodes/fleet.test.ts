// Streams to agents: one of a silent agent is ended, which is distinguished from other ends.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { Fleet } from './fleet.ts'

/** Opens a stream whose outlet is never full. */
function open(fleet: Fleet, node: string, wrote: (lines: string) => void = () => undefined) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const write = (lines: string): boolean => {
    wrote(lines)
    return true
  }
  const stream = fleet.open(node, () => ({ type: 'PING' }), { write, end })
  stream.resume()
  return { stream, ended }
}

it('a stream ends when its node is silent for too long', async () => {
  const fleet = new Fleet(20)
  // The timer of the stream does not keep the process alive.
  using _awake = setInterval(() => undefined, 1_000)
  const told: unknown[] = []
  fleet.subscribe((node, isOpen, silentMs) => told.push([node, isOpen, silentMs !== undefined && silentMs > 20]))
  await open(fleet, 'quiet').ended
  assert.ok(!fleet.isOpen('quiet'))
  const gone = open(fleet, 'gone')
  gone.stream.end()
  await gone.ended
  fleet.dropAll()
  assert.deepEqual(told, [
    ['quiet', true, false],
    ['quiet', false, true],
    ['gone', true, false],
    ['gone', false, false],
  ])
})

it('a stream gets a ping when nothing was sent for longer than a heartbeat', async () => {
  const lookMs = 100
  const fleet = new Fleet(60_000, lookMs)
  using _awake = setInterval(() => undefined, 1_000)
  const pings = new Map<string, number>()
  const quietMs: number[] = []
  const follow = (node: string): void => {
    let sentMs: number | undefined
    open(fleet, node, (line) => {
      const nowMs = performance.now()
      if (line.includes('PING')) {
        quietMs.push(nowMs - (sentMs ?? Number.NEGATIVE_INFINITY))
        pings.set(node, (pings.get(node) ?? 0) + 1)
      }
      sentMs = nowMs
    })
  }
  follow('quiet')
  follow('busy')
  using _answers = setInterval(() => fleet.sendCache('busy', { images: [], drops: [] }), 2 * lookMs)
  await eventually(() => assert.ok((pings.get('quiet') ?? 0) > 3))
  fleet.dropAll()
  assert.ok(
    quietMs.every((ms) => ms >= 1.5 * lookMs),
    String(quietMs),
  )
})
