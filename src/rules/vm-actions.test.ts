// Every action in every state on both architectures (docs/spec.md R30, R31).
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { powerStates } from '../api/vms/vms.ts'
import { powerAfter, refuseAction, type VmAction } from './vm-actions.ts'

const allowed: Readonly<Record<VmAction, readonly string[]>> = {
  start: ['stopped', 'failed'],
  stop: ['running'],
  suspend: ['running'],
  resume: ['suspended'],
  revert: ['running', 'stopped', 'suspended', 'failed'],
  resize: ['running'],
  save: ['running'],
  commit: ['running'],
  push: ['running'],
}
const actions = Object.keys(allowed) as VmAction[]

describe('actions on VMs', () => {
  for (const action of actions) {
    for (const powerState of powerStates) {
      it(`${action} of an Intel-based VM that is ${powerState}`, () => {
        const refusal = refuseAction(action, { name: 'x', namespace: 'svc-ios', architecture: 'amd64', powerState })
        const expected = action === 'push' ? 'Invalid' : allowed[action].includes(powerState) ? undefined : 'Conflict'
        assert.equal(refusal?.reason, expected)
        if (refusal) assert.ok(refusal.message.startsWith('VM x ') && refusal.options.hint)
      })
      it(`${action} of an Apple silicon-based VM that is ${powerState}`, () => {
        const refusal = refuseAction(action, { name: 'x', namespace: 'svc-ios', architecture: 'arm64', powerState })
        const isForBoth = ['resize', 'save', 'commit', 'push'].includes(action)
        const expected = isForBoth ? (powerState === 'running' ? undefined : 'Conflict') : 'Invalid'
        assert.equal(refusal?.reason, expected)
      })
    }
  }

  it('an action is refused while another one is in progress', () => {
    const vm = {
      name: 'x',
      namespace: 'svc-ios',
      architecture: 'amd64',
      powerState: 'running',
      busyWith: 'resize',
    } as const
    assert.match(refuseAction('stop', vm)?.message ?? '', /resize in progress/)
  })

  it('an action is refused without advice if the VM is already in that state', () => {
    const said = (action: VmAction, powerState: 'running' | 'stopped' | 'suspended') => {
      const refusal = refuseAction(action, { name: 'x', namespace: 'svc-ios', architecture: 'amd64', powerState })
      return [refusal?.reason, refusal?.message, refusal?.options.hint]
    }
    assert.deepEqual(said('stop', 'stopped'), ['Conflict', 'VM x is already stopped', 'Nothing was changed'])
    assert.deepEqual(said('suspend', 'suspended'), ['Conflict', 'VM x is already suspended', 'Nothing was changed'])
    assert.deepEqual(said('start', 'running'), ['Conflict', 'VM x is already running', 'Nothing was changed'])
  })

  it('a hint about a VM has a command that works when copied', () => {
    const vm = { name: 'x', namespace: 'svc-ios', architecture: 'amd64', powerState: 'suspended' } as const
    assert.equal(refuseAction('start', vm)?.options.hint, 'Resume it: svc3 vm resume x -n svc-ios')
  })

  it('the desired power of every action', () => {
    assert.deepEqual(
      actions.map((action) => powerAfter(action)),
      ['running', 'stopped', 'suspended', 'running', 'running', 'running', 'running', 'running', 'running'],
    )
  })
})
