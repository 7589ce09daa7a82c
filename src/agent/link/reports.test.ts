// Reports: only the newest of each VM, in batches, until the server has taken them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { ApiError } from '../../api/errors.ts'
import type { VmReport } from '../../api/nodes/agent.ts'
import { silentLog } from '../../platform/log.ts'
import { Reports } from './reports.ts'

const report = (uid: string, more: Partial<VmReport> = {}): VmReport => ({
  uid,
  namespace: 'svc-default',
  name: uid,
  generation: 1,
  power: 'running',
  ...more,
})

function rig(answer: (batch: readonly VmReport[], call: number) => readonly string[] | Error) {
  const batches: (readonly VmReport[])[] = []
  const unknown: string[] = []
  const waiting: (() => void)[] = []
  const reports = new Reports({
    async send(vms) {
      batches.push(vms)
      for (const wake of waiting.splice(0)) wake()
      const result = answer(vms, batches.length)
      if (result instanceof Error) throw result
      return result
    },
    unknown: (uid) => void unknown.push(uid),
    log: silentLog,
  })
  const sent = async (count: number): Promise<void> => {
    while (batches.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
    await new Promise(setImmediate)
  }
  return { reports, batches, unknown, sent }
}

describe('reports of VMs', () => {
  it('reports of VMs are sent at once; during a call the newest of each VM waits', async () => {
    const { reports, batches, sent } = rig(() => [])
    reports.send(report('a', { power: 'starting' }))
    reports.send(report('b'))
    reports.send(report('b', { power: 'stopped' }))
    reports.send(report('a'))
    await sent(2)
    assert.deepEqual(
      batches.map((batch) => batch.map(({ uid, power }) => `${uid} ${power}`)),
      [['a starting'], ['b stopped', 'a running']],
    )
    await reports.stop()
  })

  it('reports of VMs are not sent twice, unless everything is repeated', async () => {
    const { reports, batches, sent } = rig(() => [])
    reports.send(report('a'))
    await sent(1)
    reports.send(report('a'))
    await new Promise(setImmediate)
    assert.equal(batches.length, 1)
    reports.repeat()
    await sent(2)
    await reports.stop()
  })

  it('reports of progress are sent only if the outcome does not come soon', async () => {
    const { reports, batches, sent } = rig(() => [])
    const operation = { kind: 'deploy', phase: 'starting' }
    reports.sendProgress('a', () => report('a', { operation }))
    reports.send(report('a'))
    await sent(1)
    assert.equal(batches[0]?.[0]?.operation, undefined)
    reports.sendProgress('a', () => report('a', { operation }))
    await sent(2)
    assert.deepEqual(batches[1]?.[0]?.operation, operation)
    await reports.stop()
  })

  it('reports of VMs that were not taken are repeated with the current state', async () => {
    const { reports, batches, sent } = rig((_, call) => {
      if (call > 1) return []
      // During the call, so that the pause has not begun.
      reports.send(report('a', { power: 'stopped' }))
      return new Error('lost')
    })
    reports.send(report('a'))
    await sent(2)
    assert.deepEqual(
      batches[1]?.map(({ power }) => power),
      ['stopped'],
    )
    await reports.stop()
  })

  it('reports of VMs that the server cannot read do not block others', async () => {
    const isBad = (batch: readonly VmReport[]): boolean => batch.some(({ uid }) => uid === 'bad')
    const { reports, batches, sent } = rig((batch) => (isBad(batch) ? new ApiError('Invalid', 'no') : []))
    reports.send(report('first'))
    for (const uid of ['a', 'bad', 'b']) reports.send(report(uid))
    await sent(5)
    const taken = batches.filter((batch) => !isBad(batch)).flat()
    assert.deepEqual(taken.map(({ uid }) => uid).sort(), ['a', 'b', 'first'])
    await reports.stop()
  })

  it('reports of VMs that are too large together are sent in smaller batches, and a single one is dropped', async () => {
    const isTooLarge = (batch: readonly VmReport[]): boolean =>
      batch.length > 100 || batch.some(({ uid }) => uid === 'large')
    const { reports, batches, sent } = rig((batch) =>
      isTooLarge(batch) ? new ApiError('RequestEntityTooLarge', 'no') : [],
    )
    reports.send(report('first'))
    const uids = Array.from({ length: 400 }, (_, index) => `${index}`)
    for (const uid of [...uids, 'large']) reports.send(report(uid))
    const seen = (isLarge: boolean): string[][] =>
      batches.filter((batch) => isTooLarge(batch) === isLarge).map((batch) => batch.map(({ uid }) => uid))
    await eventually(() => {
      assert.deepEqual(seen(false).flat().sort(), ['first', ...uids].sort())
      assert.deepEqual(seen(true).at(-1), ['large'])
    })
    const count = batches.length
    reports.send(report('last'))
    await sent(count + 1)
    assert.deepEqual(seen(false).at(-1), ['last'])
    await reports.stop()
  })

  it('reports return VMs that the server does not know, and forget removed VMs', async () => {
    const { reports, batches, unknown, sent } = rig(() => ['a'])
    reports.send(report('a', { power: 'removed' }))
    await sent(1)
    assert.deepEqual(unknown, ['a'])
    reports.repeat()
    await new Promise(setImmediate)
    assert.equal(batches.length, 1)
    await reports.stop()
  })
})
