// What people read of a guest that cannot be reached.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { unreachableReasons } from '../api/vms/guest-reach.ts'
import { isGuestReachable, reachProblem } from './guest-reach.ts'

const vm = (status: 'True' | 'False', reason: string) => ({
  conditions: [{ type: 'GuestReachable', status, reason, message: 'the last error', at: '' }],
})

it('each reason for which a guest cannot be reached says what happened, with the last error, and what to do', () => {
  const told = unreachableReasons.map((reason) => reachProblem(vm('False', reason)))
  for (const problem of told)
    assert.match(`${problem?.what}. ${problem?.next}`, /^[a-z].* \(the last error\)\. [A-Z].*[a-z)]$/)
  assert.equal(new Set(told.map((problem) => problem?.what)).size, unreachableReasons.length)
  assert.match(reachProblem(vm('False', 'OfANewerAgent'))?.what ?? '', /does not answer/)
})

it('a guest without the condition is neither reachable nor unreachable', () => {
  assert.deepEqual([isGuestReachable({ conditions: [] }), reachProblem({ conditions: [] })], [false, undefined])
  assert.deepEqual(
    [isGuestReachable(vm('True', 'Reachable')), reachProblem(vm('True', 'Reachable'))],
    [true, undefined],
  )
  assert.equal(isGuestReachable(vm('False', 'Refused')), false)
})
