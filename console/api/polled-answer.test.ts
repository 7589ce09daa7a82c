// Cached answers: when they are fetched, what a failure keeps, and that a late response does not replace a newer one.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PolledAnswer } from './polled-answer.ts'

function opened() {
  const asked: PromiseWithResolvers<number>[] = []
  const signals: AbortSignal[] = []
  const errors: unknown[] = []
  const answer = new PolledAnswer<number>(
    (signal) => {
      const each = Promise.withResolvers<number>()
      asked.push(each)
      signals.push(signal)
      return each.promise
    },
    (error) => errors.push(error),
  )
  let told = 0
  const leave = answer.subscribe(() => told++)
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { answer, asked, signals, errors, leave, settled, told: () => told }
}

describe('an answer that is polled', () => {
  it('an answer that is polled is pending until it is there, and tells that it came', async () => {
    const { answer, asked, settled, told } = opened()
    answer.refresh(0)
    assert.deepEqual(answer.now(), { data: undefined, error: undefined, isPending: true })
    asked[0]?.resolve(1)
    await settled()
    assert.deepEqual([answer.now(), told()], [{ data: 1, error: undefined, isPending: false }, 1])
  })

  it('an answer that is polled is not asked for again while it is on its way or fresh', async () => {
    const { answer, asked, settled } = opened()
    answer.refresh(0)
    answer.refresh(60_000)
    asked[0]?.resolve(1)
    await settled()
    answer.refresh(4_999)
    assert.equal(asked.length, 1)
    answer.refresh(5_000)
    assert.equal(asked.length, 2)
  })

  it('an answer that is polled stays when the next one fails, and the fault goes with the one after it', async () => {
    const { answer, asked, errors, settled } = opened()
    const fault = new Error('away')
    for (const [index, end] of [
      () => asked[0]?.resolve(1),
      () => asked[1]?.reject(fault),
      () => asked[2]?.resolve(3),
    ].entries()) {
      void answer.again(index * 10_000)
      end()
      await settled()
      assert.equal(answer.now().data, [1, 1, 3][index])
      assert.equal(answer.now().error, index === 1 ? fault : undefined)
    }
    assert.deepEqual(errors, [fault])
  })

  it('an answer that is polled takes nothing from a request that was overtaken or that nobody waits for', async () => {
    const { answer, asked, signals, leave, settled, told } = opened()
    void answer.again(0)
    void answer.again(1)
    assert.deepEqual([signals[0]?.aborted, signals[1]?.aborted], [true, false])
    asked[0]?.resolve(1)
    leave()
    asked[1]?.resolve(2)
    await settled()
    assert.deepEqual([answer.now().isPending, told(), signals[1]?.aborted], [true, 0, true])
    answer.subscribe(() => undefined)
    answer.refresh(2)
    assert.equal(asked.length, 3, 'whoever comes next asks')
  })
})
