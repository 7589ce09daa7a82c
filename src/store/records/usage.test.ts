// Usage of VMs: across midnight, while waiting, and ends that count once despite interruptions.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countUsage } from '../../controllers/count-usage.ts'
import { silentLog } from '../../platform/log.ts'
import { openMemory } from '../memory.ts'
import { openCollections } from './collections.ts'
import { usageByDay, usageName, type VmSpan, withEnded } from './usage.ts'

const hour = 3_600_000
const midnight = Date.parse('2026-11-17T00:00:00Z')
const span: VmSpan = {
  namespace: 'svc-ios',
  owner: 'ada',
  cpu: 4,
  requestedMs: midnight - 2 * hour - 30_000,
  placedMs: midnight - 2 * hour,
  endedMs: midnight + 25 * hour,
}

describe('usage', () => {
  it('usage of a VM is split at midnight, and its wait counts on the day when the wait ended', () => {
    assert.deepEqual(Object.fromEntries(usageByDay(span)), {
      '2026-11-16': { vms: 1, vmMs: 2 * hour, coreMs: 8 * hour, queueMs: 30_000 },
      '2026-11-17': { vms: 0, vmMs: 24 * hour, coreMs: 96 * hour, queueMs: 0 },
      '2026-11-18': { vms: 0, vmMs: hour, coreMs: 4 * hour, queueMs: 0 },
    })
    const { placedMs: _, ...waited } = span
    assert.deepEqual(Object.fromEntries(usageByDay({ ...waited, endedMs: midnight })), {
      '2026-11-17': { vms: 0, vmMs: 0, coreMs: 0, queueMs: 2 * hour + 30_000 },
    })
  })

  it('usage counts an end once, even if its record is added again', async () => {
    const collections = await openCollections(openMemory())
    const clock = { now: () => new Date(midnight + 26 * hour) }
    await collections.vmEnds.create('', 'first', { spans: { u1: span } })
    await collections.vmEnds.create('', 'again', { spans: { u1: span } })
    const { delete: remove } = collections.vmEnds
    // Interrupted before the record of the end is deleted.
    collections.vmEnds.delete = async () => {
      throw new Error('cut off')
    }
    const round = async (isLast = false): Promise<void> => {
      const before = collections.usage.view.rev
      const loop = countUsage({ collections, clock, log: silentLog })
      while (collections.usage.view.rev === before && !isLast) await new Promise((resolve) => setImmediate(resolve))
      await loop.stop()
    }
    await round()
    collections.vmEnds.delete = remove
    await round(true)
    assert.equal(collections.vmEnds.list().length, 0)
    const day = collections.usage.get('', usageName('2026-11-17', 'svc-ios'))?.value
    assert.deepEqual(day?.owners, { ada: { vms: 0, vmMs: 24 * hour, coreMs: 96 * hour, queueMs: 0 } })
    assert.equal(collections.usage.list().length, 3)
  })

  it('usage of a day forgets a counted VM once it can no longer be added again', () => {
    const about = { day: '2026-11-17', namespace: 'svc-ios' }
    const first = withEnded(undefined, about, new Map([['u1', span]]), 1, () => false)
    const second = withEnded(first, about, new Map([['u2', span]]), 2, (uid) => uid === 'u1')
    assert.deepEqual(Object.keys(second.counted), ['u2'])
    assert.equal(second.owners.ada?.vmMs, 48 * hour)
    assert.deepEqual(withEnded(second, about, new Map([['u2', span]]), 3, () => false).owners, second.owners)
  })
})
