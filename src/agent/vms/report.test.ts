// The warning of a VM: what its last work left, and what its driver observes since.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Observed } from '../../drivers/driver.ts'
import type { StoredDesired, VmHandleRecord } from '../state/handles.ts'
import { reportOf } from './report.ts'

const warningOf = (recorded: string | undefined, observed: Observed): string | undefined =>
  reportOf({
    desired: { uid: 'u', namespace: 'n', name: 'a' } as StoredDesired,
    record: recorded === undefined ? undefined : ({ warning: recorded } as VmHandleRecord),
    observed,
    ...{ portsTaken: undefined, booted: undefined, reach: undefined, arrival: undefined },
  }).warning

it('the warning of a VM is that of its last work, with what the driver added to it', () => {
  const running = (note?: string): Observed => ({ state: 'running', ...(note !== undefined && { note }) })
  assert.equal(warningOf(undefined, running()), undefined)
  assert.equal(warningOf(undefined, running('no screen')), 'no screen')
  assert.equal(warningOf('no screen', running()), 'no screen')
  assert.equal(warningOf('no screen', running('no screen; the script failed')), 'no screen; the script failed')
  assert.equal(warningOf('the disk did not grow', running('no screen')), 'the disk did not grow')
  assert.match(warningOf(undefined, { state: 'gone' }) ?? '', /host/)
})
