// The table of plans: each cell, and rules for all of them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Actual, type Desired, planFor, type VmPlan, type VmSituation } from './plan.ts'
import { failPoints, steps, workKinds } from './steps.ts'

const desires: readonly Desired[] = ['running', 'stopped', 'suspended', 'deleted']
const actuals: readonly Actual[] = ['absent', 'stopped', 'running', 'suspended', 'failed', 'gone']
const flags = [false, true]

const every: readonly VmSituation[] = desires.flatMap((desired) =>
  actuals.flatMap((actual) =>
    flags.flatMap((isFulfilled) =>
      flags.flatMap((isDeployed) =>
        flags.flatMap((needsRevert) =>
          flags.flatMap((needsGrowth) =>
            flags.map((hasCredentials) => ({
              desired,
              actual,
              isFulfilled,
              isDeployed,
              needsRevert,
              needsGrowth,
              needsCapture: false,
              needsClaim: false,
              isUnclaimable: false,
              hasCredentials,
              hasInside: false,
            })),
          ),
        ),
      ),
    ),
  ),
)

const shown = (plan: VmPlan): string => ('kind' in plan ? `${plan.kind}: ${plan.steps.join(' ')}` : plan.as)
const needsNothing = {
  needsRevert: false,
  needsGrowth: false,
  needsCapture: false,
  needsClaim: false,
  isUnclaimable: false,
  hasCredentials: false,
  hasInside: false,
}
const plain = { isFulfilled: false, isDeployed: true, ...needsNothing }
const row = (desired: Desired, more: Partial<VmSituation> = {}): string[] =>
  actuals.map((actual) => shown(planFor({ ...plain, desired, actual, ...more })))

const start = 'start: image start'
const deploy = 'deploy: image create start'
const stop = 'stop: stop'
const remove = 'delete: destroy'

describe('capture in a plan', () => {
  it('a pending capture is frozen before anything else, also before a deletion, in every state', () => {
    for (const situation of every) {
      const plan = shown(planFor({ ...situation, needsCapture: true }))
      assert.equal(plan, situation.isDeployed ? 'capture: capture' : shown(planFor(situation)))
    }
  })
})

describe('slot of a pool that a VM takes over', () => {
  const slot = { isDeployed: false, needsClaim: true } as const

  it('a slot that runs or is parked becomes the VM; in other states it is removed for a deployment', () => {
    assert.deepEqual(
      row('running', slot),
      actuals.map((actual) => (actual === 'running' || actual === 'suspended' ? 'claim: claim' : 'claim: discard')),
    )
  })

  it('a slot that could not become the VM is removed for a deployment', () => {
    assert.equal(
      shown(planFor({ ...plain, ...slot, desired: 'running', actual: 'running', isUnclaimable: true })),
      'claim: discard',
    )
  })

  it('a VM that is deleted before it took over its slot is removed like any other', () => {
    assert.deepEqual(
      row('deleted', slot),
      actuals.map(() => remove),
    )
  })
})

describe('new desired state', () => {
  //                                              absent, stopped, running, suspended, failed, gone
  const table: Readonly<Record<Desired, readonly string[]>> = {
    running: ['lost', start, 'done', 'resume: resume', start, start],
    stopped: ['lost', 'done', stop, stop, stop, stop],
    suspended: ['lost', 'not-running', 'suspend: suspend', 'done', 'not-running', 'not-running'],
    deleted: [remove, remove, remove, remove, remove, remove],
  }
  for (const desired of desires)
    it(`a new desired state: ${desired}`, () => assert.deepEqual(row(desired), table[desired]))

  it('a new desired state of a VM that is not deployed creates it, and reports no lost disk', () => {
    const more = { isDeployed: false }
    assert.deepEqual(row('running', more), [deploy, deploy, 'done', 'resume: resume', deploy, deploy])
    assert.deepEqual(row('stopped', more), ['done', 'done', stop, stop, stop, stop])
    assert.equal(row('suspended', more)[0], 'not-running')
  })
})

describe('desired state that was carried out', () => {
  const more = { isFulfilled: true }
  it('a desired state that was carried out leaves a VM down that shut itself down, and starts one that ended with the host', () =>
    assert.deepEqual(row('running', more), ['lost', 'done', 'done', 'done', 'done', start]))
  it('a desired state that was carried out keeps a stopped VM stopped', () =>
    assert.deepEqual(row('stopped', more), ['lost', 'done', stop, stop, 'done', 'done']))
  it('a desired state that was carried out keeps a suspended VM suspended', () =>
    assert.deepEqual(row('suspended', more), ['lost', 'done', 'suspend: suspend', 'done', 'done', 'done']))
  it('a desired state that was carried out does not retry a failed deployment', () =>
    assert.equal(row('running', { ...more, isDeployed: false })[0], 'done'))
})

describe('disk that is to change', () => {
  it('a disk that is to change is reverted without a grace period, and the VM returns to its desired state', () => {
    const more = { needsRevert: true }
    const down = 'revert: image revert start'
    const up = 'revert: image kill revert start'
    assert.deepEqual(row('running', more), ['revert: image create start', down, up, up, up, down])
    assert.equal(row('stopped', more)[2], 'revert: image kill revert')
  })

  it('a disk that is to change is grown while the VM is down, its partition and file system when it runs again', () => {
    const more = { needsGrowth: true, hasCredentials: true }
    const up = 'resize: image stop grow start partition'
    const down = 'resize: image grow start partition'
    assert.deepEqual(row('running', more), ['lost', down, up, up, up, down])
    assert.equal(row('running', { needsGrowth: true })[2], 'resize: image stop grow start')
    assert.equal(row('stopped', more)[2], 'resize: image stop grow')
    assert.deepEqual(row('running', { hasCredentials: true }), ['lost', down, up, up, up, down])
    assert.equal(row('stopped', { hasCredentials: true })[2], 'stop: stop')
    assert.deepEqual(row('running', { needsGrowth: true, hasInside: true }), ['lost', down, up, up, up, down])
    assert.equal(row('running', { hasInside: true })[2], 'done', 'without a login only a disk that grows needs it')
  })

  it('a disk that is to change is not changed again once the desired state was carried out or failed', () =>
    assert.equal(row('running', { isFulfilled: true, needsGrowth: true, needsRevert: true })[2], 'done'))
})

describe('plan table', () => {
  it('the table of plans has only the steps of each kind of work, in their order', () => {
    for (const situation of every) {
      const plan = planFor(situation)
      if (!('kind' in plan)) continue
      const places = plan.steps.map((step) => (workKinds[plan.kind] as readonly string[]).indexOf(step))
      assert.ok(!places.includes(-1), shown(plan))
      assert.deepEqual(
        places,
        [...places].sort((a, b) => a - b),
        shown(plan),
      )
    }
  })

  it('the table of plans uses every step, and every step has a fail point', () => {
    const more = [{}, { needsCapture: true }, { needsClaim: true }]
    const all = more.flatMap((change) => every.map((situation) => ({ ...situation, ...change })))
    const used = new Set(all.map(planFor).flatMap((plan) => [...plan.steps]))
    assert.deepEqual([...used].sort(), [...steps].sort())
    for (const step of steps)
      assert.ok(
        failPoints.some((name) => name.endsWith(`.${step}`)),
        step,
      )
  })

  it('the table of plans never creates or changes a disk of a running VM, and never starts a VM that shall be down', () => {
    for (const situation of every) {
      const plan = planFor(situation)
      const list: readonly string[] = plan.steps
      const isUp = situation.actual === 'running' || situation.actual === 'suspended'
      const change = list.findIndex((step) => step === 'grow' || step === 'revert')
      if (isUp && change !== -1) assert.ok(list.slice(0, change).some((step) => step === 'stop' || step === 'kill'))
      if (situation.desired === 'stopped' || situation.desired === 'deleted') assert.ok(!list.includes('start'))
      if (situation.desired !== 'deleted') assert.ok(!list.includes('destroy'))
    }
  })
})
