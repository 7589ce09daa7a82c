// The event-loop watchdog, with an event loop that is really held.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSlices, watchEventLoop } from './event-loop.ts'

const hold = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

it('an event loop that is held for 1.5 s is noticed, and how long it was', async () => {
  const { promise, resolve } = Promise.withResolvers<number>()
  using _watch = watchEventLoop(resolve)
  // The monitor needs two turns of the event loop.
  await sleep(300)
  hold(1_500)
  using _alive = aliveUntilDone()
  const heldMs = await promise
  assert.ok(heldMs >= 1_000 && heldMs < 60_000, `${heldMs} ms`)
})

it('an event loop is no longer watched once the watch has ended', async () => {
  const told: number[] = []
  watchEventLoop((heldMs) => told.push(heldMs))[Symbol.dispose]()
  hold(1_200)
  await sleep(1_200)
  assert.deepEqual(told, [])
})

it('long work makes way for others once it has held the event loop for a slice, and not before', async () => {
  let now = 0
  const others = createSlices(() => now)
  now = 14
  assert.equal(others(), undefined)
  now = 15
  let isServed = false
  setImmediate(() => {
    isServed = true
  })
  await others()
  assert.ok(isServed)
  // The next slice begins.
  assert.equal(others(), undefined)
})

/** The watch alone keeps no process alive. */
function aliveUntilDone(): Disposable {
  const timer = setInterval(() => undefined, 100)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
