// Messages must recommend only actions that are possible.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { refuseAction, type VmAction } from '../../rules/vm-actions.ts'
import { failureMessage, lostProblem } from './messages.ts'
import { type WorkKind, workKinds } from './steps.ts'

const words: Readonly<Record<string, VmAction>> = { start: 'start', stop: 'stop', resume: 'resume', revert: 'revert' }

describe('advice about a VM', () => {
  for (const kind of Object.keys(workKinds) as WorkKind[])
    it(`advice about a VM whose ${kind} failed recommends nothing that is refused on arm64`, () => {
      const text = failureMessage(kind, { node: 'n', architecture: 'arm64' }, new Error('why'), [])
      const advice = /why\. (.*)$/.exec(text)?.[1] ?? ''
      assert.notEqual(advice, '')
      for (const [word, action] of Object.entries(words)) {
        const vm = { name: 'a', namespace: 'svc-default', architecture: 'arm64', powerState: 'failed' } as const
        assert.ok(refuseAction(action, vm))
        assert.doesNotMatch(advice, new RegExp(`\\b${word}\\b`))
      }
    })

  it('advice about a VM is to start it again if that is possible, and otherwise to deploy another one', () => {
    assert.match(failureMessage('start', { node: 'n', architecture: 'amd64' }, 'why', []), /start it again/)
    assert.match(
      failureMessage('start', { node: 'n', architecture: 'arm64' }, 'why', []),
      /Check its logs, or delete it and deploy another VM/,
    )
    assert.match(lostProblem('n'), /Delete it and deploy another VM/)
  })
})
