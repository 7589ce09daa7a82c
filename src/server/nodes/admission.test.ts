// Returning nodes: a few are served at a time, in order, and the rest are refused with a time for the next try.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '../../api/errors.ts'
import { SyncQueue } from './admission.ts'

it('a limited number of returning nodes is served at a time, in order', async () => {
  const admission = new SyncQueue({ concurrent: 2 })
  const order: number[] = []
  let now = 0
  let max = 0
  const admit = (n: number): Promise<void> =>
    admission.admit(`n${n}`, async () => {
      max = Math.max(max, ++now)
      order.push(n)
      await sleep(1)
      now--
    })
  await Promise.all(Array.from({ length: 10 }, (_, n) => admit(n)))
  assert.equal(max, 2)
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

it('a returning node is asked to retry within 20 s if the queue is full', async () => {
  const admission = new SyncQueue({ concurrent: 1, maxWaiting: 1 })
  const held = Promise.withResolvers<void>()
  const first = admission.admit('first', () => held.promise)
  const second = admission.admit('second', async () => undefined)
  for (let n = 0; n < 100; n++)
    await assert.rejects(
      admission.admit('third', async () => undefined),
      (error) => {
        const seconds = error instanceof ApiError && error.code === 429 ? (error.options.retryAfterSeconds ?? 0) : 0
        return seconds >= 5 && seconds <= 20
      },
    )
  held.resolve()
  await Promise.all([first, second])
  assert.equal(await admission.admit('third', async () => 'in'), 'in')
})

it('a returning node that fails frees its slot', async () => {
  const admission = new SyncQueue({ concurrent: 1 })
  await assert.rejects(
    admission.admit('first', () => Promise.reject(new Error('lost'))),
    /lost/,
  )
  assert.equal(await admission.admit('second', async () => 'in'), 'in')
})
