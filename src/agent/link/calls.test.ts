// Calls on a kept connection: messages, answers in any order, and calls that are not answered.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../api/errors.ts'
import { noteAgent, reportVms } from '../../api/nodes/agent.ts'
import { type AgentCall, longestCall } from '../../api/nodes/agent-connection.ts'
import { ConnectionError } from '../../client/transport.ts'
import { Calls } from './calls.ts'

const { signal } = new AbortController()

function rig() {
  const messages: AgentCall[] = []
  const calls = new Calls('http://stand-in', (text) => messages.push(JSON.parse(text)))
  return { calls, messages }
}

describe('calls on a kept connection', () => {
  it('a call on a kept connection gets its own answer, in any order', async () => {
    const { calls, messages } = rig()
    const both = [calls.call(noteAgent, undefined, signal), calls.call(reportVms, { vms: [] }, signal)]
    assert.deepEqual(messages, [
      { id: 1, operation: 'noteAgent' },
      { id: 2, operation: 'reportVms', body: { vms: [] } },
    ])
    calls.answered({ type: 'ANSWER', id: 2, status: 200, body: { unknown: [] } })
    calls.answered({ type: 'ANSWER', id: 77, status: 200, body: 'of an unknown call' })
    calls.answered({ type: 'ANSWER', id: 1, status: 200, body: { wantsReport: true } })
    calls.answered({ type: 'ANSWER', id: 1, status: 500 })
    assert.deepEqual(await Promise.all(both), [{ wantsReport: true }, { unknown: [] }])
  })

  it('a call on a kept connection fails with the error of the server', async () => {
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

  it('calls on a kept connection fail when it is lost, and it takes no more of them', async () => {
    const { calls } = rig()
    const call = calls.call(noteAgent, undefined, signal)
    calls.lost()
    await assert.rejects(
      call ?? Promise.resolve(),
      (error) => error instanceof ConnectionError && error.fault === 'lost',
    )
    assert.equal(calls.call(noteAgent, undefined, signal), undefined)
  })

  it('a call on a kept connection fails when its answer is late, and later calls do not', async () => {
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

  it('a call on a kept connection ends with the signal of its own caller only', async () => {
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

  it('a call that is too long for a kept connection is not taken', async () => {
    const { calls, messages } = rig()
    assert.equal(calls.call(reportVms, { vms: ['x'.repeat(longestCall)] }, signal), undefined)
    assert.deepEqual(messages, [])
  })
})
