// What an agent's report changes in the record of a VM.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { VmReport } from '../../api/nodes/agent.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { mergeReport } from './reports.ts'

const now = new Date('2026-11-16T12:00:00Z')
const running: VmReport = { uid: 'u', namespace: 'svc-default', name: 'demo', generation: 1, power: 'running' }
// Only the fields that reports are compared with.
const record = {
  desired: { generation: 1, power: 'running', diskGeneration: 1, action: 'deploy' },
  observed: { generation: 1, power: 'running', hasRun: true },
  conditions: [],
} as unknown as VmRecord

const conditionsOf = (from: VmRecord, report: VmReport) =>
  (mergeReport(from, report, now) ?? from).conditions.map(({ type, status, reason }) => [type, status, reason])

it('a report that a guest has booted, or has not for minutes, sets a condition', () => {
  assert.deepEqual(conditionsOf(record, { ...running, booted: true }), [['Booted', 'True', 'SshAnswers']])
  assert.deepEqual(conditionsOf(record, { ...running, booted: false }), [['Booted', 'False', 'NoSshAnswer']])
})

it('a report without the boot state keeps the condition, and one of a stopped VM removes it', () => {
  const booted = mergeReport(record, { ...running, booted: true }, now) as VmRecord
  assert.equal(mergeReport(booted, running, now), undefined)
  assert.equal(mergeReport(booted, { ...running, booted: true }, new Date()), undefined)
  assert.deepEqual(conditionsOf(booted, { ...running, power: 'suspended' }), [['Booted', 'True', 'SshAnswers']])
  assert.deepEqual(conditionsOf(booted, { ...running, power: 'stopped' }), [])
})

it('a report of how the guest was reached sets a condition while the VM runs, with the last error as message', () => {
  const unreachable = { ...running, reach: { reason: 'NoAddress', message: 'no lease' } } as const
  assert.deepEqual(conditionsOf(record, unreachable), [['GuestReachable', 'False', 'NoAddress']])
  const failing = mergeReport(record, unreachable, now) as VmRecord
  assert.equal(failing.conditions[0]?.message, 'no lease')
  assert.equal(mergeReport(failing, running, now), undefined)
  const reached = mergeReport(failing, { ...running, booted: true, reach: { ok: true } }, now) as VmRecord
  assert.deepEqual(conditionsOf(reached, running), [
    ['Booted', 'True', 'SshAnswers'],
    ['GuestReachable', 'True', 'Reachable'],
  ])
  assert.deepEqual(conditionsOf(reached, { ...running, power: 'suspended' }), [['Booted', 'True', 'SshAnswers']])
  for (const power of ['stopped', 'failed', 'starting'] as const)
    assert.deepEqual(conditionsOf(reached, { ...running, power }), [])
  // The message of another driver's errors may be the same.
  const refused = { ...running, reach: { reason: 'Refused', message: 'no lease' } } as const
  assert.deepEqual(conditionsOf(failing, refused), [['GuestReachable', 'False', 'Refused']])
})

it('a report of an arriving image sets a condition with its progress, until the image is complete', () => {
  const image = { percent: 34, bytes: 1.2 * 2 ** 30, totalBytes: 3.5 * 2 ** 30, bytesPerSecond: 80 * 2 ** 20 }
  const messageOf = (from: VmRecord, report: VmReport) => mergeReport(from, report, now)?.conditions.at(-1)?.message
  const arriving = mergeReport(record, { ...running, image }, now) as VmRecord
  assert.deepEqual(conditionsOf(record, { ...running, image }), [['ImageReady', 'False', 'Arriving']])
  assert.equal(arriving.conditions.at(-1)?.message, 'image 34 %, 1.2 GiB of 3.5 GiB, 80 MiB/s')
  const waiting = { ...image, waiting: 'the registry does not answer' }
  assert.equal(
    messageOf(arriving, { ...running, image: waiting }),
    'image 34 %, 1.2 GiB of 3.5 GiB, waiting: the registry does not answer',
  )
  assert.deepEqual(conditionsOf(arriving, running), [['ImageReady', 'True', 'Complete']])
  assert.deepEqual(conditionsOf(arriving, { ...running, power: 'stopped' }), [])
  assert.equal(mergeReport(record, running, now), undefined)
})

it('a report records the time of the first start and the first boot, once', () => {
  const asked = { ...record, observed: { generation: 0, power: 'starting', hasRun: false }, times: { requestedMs: 1 } }
  const started = mergeReport(asked as VmRecord, running, new Date(5)) as VmRecord
  assert.deepEqual(started.times, { requestedMs: 1, startedMs: 5 })
  const booted = mergeReport(started, { ...running, booted: true }, new Date(9)) as VmRecord
  assert.deepEqual(booted.times, { requestedMs: 1, startedMs: 5, bootedMs: 9 })
  const again = mergeReport(booted, { ...running, power: 'stopped' }, new Date(12)) as VmRecord
  assert.deepEqual((mergeReport(again, { ...running, booted: true }, new Date(20)) as VmRecord).times, booted.times)
  assert.equal(mergeReport(record, { ...running, booted: true }, now)?.times, undefined)
})
