// Nodes that come all at once: so many at a time, in order, the rest with a turn that grows with those ahead of it.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import { Arrivals } from './arrivals.ts'

it('so many nodes arrive at a time, in the order in which they came', async () => {
  const arrivals = new Arrivals({ places: 2, longestWaitMs: 1_000 })
  const order: number[] = []
  let now = 0
  let most = 0
  const arrive = (n: number): Promise<void> =>
    arrivals.admit(`n${n}`, async () => {
      most = Math.max(most, ++now)
      order.push(n)
      await sleep(1)
      now--
    })
  await Promise.all(Array.from({ length: 10 }, (_, n) => arrive(n)))
  assert.equal(most, 2)
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

it('a node that finds the queue full is told its turn, later for each further one, and never beyond 20 s', async () => {
  const nowMs = 0
  const arrivals = new Arrivals({ places: 1, longestWaitMs: 4, nowMs: () => nowMs })
  const held = Promise.withResolvers<void>()
  const first = arrivals.admit('first', () => held.promise)
  const second = arrivals.admit('second', async () => undefined)
  const turns = Array.from({ length: 10_000 }, (_, n) => {
    try {
      void arrivals.admit(`n${n}`, async () => undefined)
    } catch (error) {
      assert.ok(error instanceof ApiError && error.code === 429)
      return error.options.retryAfterSeconds ?? 0
    }
    throw new Error('let in')
  })
  assert.equal(turns[0], 1)
  assert.deepEqual(
    turns,
    turns.toSorted((a, b) => a - b),
  )
  assert.equal(turns.at(-1), 20)
  held.resolve()
  await Promise.all([first, second])
})

it('one that has begun goes on however many wait, and a failure frees its place', async () => {
  const arrivals = new Arrivals({ places: 1, longestWaitMs: 4 })
  await assert.rejects(
    arrivals.admit('first', () => Promise.reject(new Error('lost'))),
    /lost/,
  )
  const held = Promise.withResolvers<void>()
  const others = [
    arrivals.admit('second', () => held.promise),
    arrivals.admit('third', async () => undefined),
    arrivals.admit('first', async () => 'in'),
  ]
  assert.throws(() => arrivals.admit('fourth', async () => undefined), /next in 1 s/)
  held.resolve()
  assert.deepEqual(await Promise.all(others), [undefined, undefined, 'in'])
  arrivals.arrived('first')
})

it('a node that has begun goes before those that have not', async () => {
  const arrivals = new Arrivals({ places: 1, longestWaitMs: 1_000 })
  const held = Promise.withResolvers<void>()
  const order: string[] = []
  const went = (what: string) => async () => void order.push(what)
  const all = [
    arrivals.admit('first', () => held.promise),
    arrivals.admit('second', went('second begins')),
    arrivals.admit('third', went('third begins')),
    arrivals.admit('first', went('first goes on')),
  ]
  held.resolve()
  await Promise.all(all)
  assert.deepEqual(order, ['first goes on', 'second begins', 'third begins'])
})

it('a turn follows the pace at which others were let in', async () => {
  let nowMs = 0
  const arrivals = new Arrivals({ places: 1, longestWaitMs: 4_950, nowMs: () => nowMs })
  const slowly = async (): Promise<void> => {
    nowMs += 100
  }
  for (let round = 0; round < 20; round++)
    await Promise.all(Array.from({ length: 50 }, (_, n) => arrivals.admit(`n${round}-${n}`, slowly)))
  await new Promise(setImmediate)
  const held = Promise.withResolvers<void>()
  const waiting = Array.from({ length: 51 }, (_, n) => arrivals.admit(`n${n}`, () => held.promise))
  assert.throws(
    () => arrivals.admit('late', slowly),
    (error) => error instanceof ApiError && error.options.retryAfterSeconds === 6,
  )
  held.resolve()
  await Promise.all(waiting)
})

it('others are served between the nodes that arrive: few begin in one turn', async () => {
  const arrivals = new Arrivals()
  let turn = 0
  const begun: number[] = []
  let counting = setImmediate(function next() {
    turn++
    counting = setImmediate(next)
  })
  await Promise.all(Array.from({ length: 20 }, (_, n) => arrivals.admit(`n${n}`, async () => void begun.push(turn))))
  clearImmediate(counting)
  for (const each of begun) assert.ok(begun.filter((other) => other === each).length <= 4, String(begun))
})
