// Calls up a kept connection: messages, answers in any order, and what becomes of calls when none comes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../api/errors.ts'
import { noteAgent, reportVms } from '../../api/nodes/agent.ts'
import { type AgentCall, longestCall } from '../../api/nodes/agent-connection.ts'
import { ConnectionError } from '../../client/transport.ts'
import { Calls } from './calls.ts'

const { signal } = new AbortController()
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

function rig() {
  const messages: AgentCall[][] = []
  const calls = new Calls('http://stand-in', (text) => messages.push(text.split('\n').map((line) => JSON.parse(line))))
  return { calls, messages }
}

describe('calls up a kept connection', () => {
  it('calls up a kept connection of one turn share a message, and each gets its own answer', async () => {
    const { calls, messages } = rig()
    const both = [calls.call(noteAgent, undefined, signal), calls.call(reportVms, { vms: [] }, signal)]
    await turn()
    assert.deepEqual(messages, [
      [
        { id: 1, operation: 'noteAgent' },
        { id: 2, operation: 'reportVms', body: { vms: [] } },
      ],
    ])
    calls.answered({ type: 'ANSWER', id: 2, status: 200, body: { unknown: [] } })
    calls.answered({ type: 'ANSWER', id: 77, status: 200, body: 'for nobody' })
    calls.answered({ type: 'ANSWER', id: 1, status: 200, body: { wantsReport: true } })
    calls.answered({ type: 'ANSWER', id: 1, status: 500 })
    assert.deepEqual(await Promise.all(both), [{ wantsReport: true }, { unknown: [] }])
  })

  it('calls up a kept connection are refused as requests are', async () => {
    const { calls } = rig()
    const call = calls.call(noteAgent, undefined, signal)
    const body = new ApiError('TooManyRequests', 'Slowly', { hint: 'Wait' }).toStatus('r-1')
    calls.answered({ type: 'ANSWER', id: 1, status: 429, body, retryAfterSeconds: 3 })
    await assert.rejects(call ?? Promise.resolve(), (error) => {
      assert.ok(error instanceof ApiError)
      const { hint, retryAfterSeconds } = error.options
      assert.deepEqual([error.code, error.message, hint, retryAfterSeconds, error.requestId], [429, 'Slowly', 'Wait', 3, 'r-1']) // biome-ignore format: one row
      return true
    })
  })

  it('calls up a kept connection fail when it is lost, and none goes up it later', async () => {
    const { calls, messages } = rig()
    const call = calls.call(noteAgent, undefined, signal)
    calls.lost()
    await assert.rejects(
      call ?? Promise.resolve(),
      (error) => error instanceof ConnectionError && error.fault === 'lost',
    )
    await turn()
    assert.deepEqual([calls.call(noteAgent, undefined, signal), messages], [undefined, []])
  })

  it('calls up a kept connection are given up when no answer came in time, the others are not', async () => {
    const { calls } = rig()
    const late = calls.call(noteAgent, undefined, signal)
    const limitMs = performance.now() + 1
    while (performance.now() <= limitMs);
    const fresh = calls.call(noteAgent, undefined, signal)
    calls.giveUp(limitMs)
    await assert.rejects(
      late ?? Promise.resolve(),
      (error) => error instanceof ConnectionError && error.fault === 'timeout',
    )
    calls.answered({ type: 'ANSWER', id: 2, status: 200, body: 1 })
    assert.equal(await fresh, 1)
  })

  it('calls up a kept connection end with the signal of their caller alone', async () => {
    const { calls } = rig()
    const [one, other] = [new AbortController(), new AbortController()]
    const ended = [calls.call(noteAgent, undefined, one.signal), calls.call(noteAgent, undefined, one.signal)]
    const stays = calls.call(noteAgent, undefined, other.signal)
    one.abort(new Error('over'))
    for (const call of [...ended, calls.call(noteAgent, undefined, one.signal)])
      await assert.rejects(call ?? Promise.resolve(), /over/)
    calls.answered({ type: 'ANSWER', id: 3, status: 200, body: 1 })
    assert.equal(await stays, 1)
  })

  it('calls up a kept connection that are too long for it go another way, and many are several messages', async () => {
    const { calls, messages } = rig()
    const half = 'x'.repeat(longestCall / 2)
    assert.equal(calls.call(reportVms, { vms: [half, half] }, signal), undefined)
    for (let count = 0; count < 3; count++) void calls.call(reportVms, { vms: [half] }, signal)
    await turn()
    assert.deepEqual(
      messages.map((lines) => lines.map(({ id }) => id)),
      [[2], [3], [4]],
    )
  })
})
