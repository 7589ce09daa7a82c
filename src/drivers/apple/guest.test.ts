// Scripts that run in a guest: what tart is told, and what is said of guests that cannot run them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ExecError, type ExecResult } from '../../platform/exec.ts'
import { runInGuest, waitForAgent } from './guest.ts'
import type { Tart } from './tart.ts'

const never = AbortSignal.timeout(60_000)

/** Answers with one result after the other, and repeats the last one. */
function answering(...answers: readonly (ExecResult | Error)[]) {
  const told: string[] = []
  const inputs: (string | undefined)[] = []
  const command: Tart['command'] = async (_, words, options) => {
    const answer = answers[Math.min(told.length, answers.length - 1)]
    told.push(words.join(' '))
    inputs.push(options?.input)
    if (answer instanceof Error || !answer) throw answer
    return answer
  }
  return { told, inputs, tart: { program: 'tart', command, inHome: command } satisfies Tart }
}

const done = { stdout: 'all of it', stderr: '' }
const noAgent = new ExecError('tart', 'failed with exit code 1', 1, 'is the Tart Guest Agent running?')

describe('scripts in a guest of tart', () => {
  it('a script runs as root in a guest of tart by its standard input, and in no argument', async () => {
    const { told, inputs, tart } = answering(done)
    assert.equal(await runInGuest(tart, '/vm', 'a', { script: 'echo secret', signal: never }), 'all of it')
    assert.deepEqual([told, inputs], [['exec -i a sudo -n sh -s'], ['echo secret']])
  })

  it('a guest of tart is asked until its agent responds', async () => {
    const { told, tart } = answering(noAgent, done)
    await waitForAgent(tart, '/vm', 'a', never)
    assert.deepEqual(told, ['exec a sudo -n true', 'exec a sudo -n true'])
  })

  it('a guest of tart without an agent, or whose user may not use sudo, is named as such', async () => {
    const silent = waitForAgent(answering(noAgent).tart, '/vm', 'a', never, 0)
    await assert.rejects(silent, /guest agent did not respond within 0 s .*is the Tart Guest Agent running/)
    const refused = new ExecError('tart', 'failed with exit code 1', 1, 'sudo: a password is required')
    await assert.rejects(waitForAgent(answering(refused).tart, '/vm', 'a', never), /sudo without a password/)
    await assert.rejects(waitForAgent(answering(noAgent).tart, '/vm', 'a', AbortSignal.abort()), { name: 'AbortError' })
  })
})
