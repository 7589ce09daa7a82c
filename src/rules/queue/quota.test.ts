// Quotas: random VMs against random limits. No limit is exceeded, and repeated admissions change nothing.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import {
  type Amounts,
  admit,
  excessText,
  firstExcess,
  nothing,
  type ResourceLimits,
  resources,
  taken,
  tooLow,
  totalOf,
  type UsageByVm,
} from './quota.ts'

const amounts: fc.Arbitrary<Amounts> = fc.record({
  cpu: fc.integer({ min: 1, max: 16 }),
  memoryMiB: fc.integer({ min: 128, max: 32_768 }),
  macos: fc.integer({ min: 0, max: 1 }),
})
const optional = (max: number): fc.Arbitrary<number | undefined> =>
  fc.option(fc.integer({ min: 0, max }), { nil: undefined })
const limits: fc.Arbitrary<ResourceLimits> = fc.record({
  vms: optional(12),
  cpu: optional(60),
  memoryMiB: optional(131_072),
  macos: optional(4),
})
const wanted = fc.array(fc.tuple(fc.constantFrom(...'abcdefghijklmnop'), amounts), { maxLength: 30 })
type Wanted = readonly (readonly [string, Amounts])[]

const after = (limit: ResourceLimits, list: Wanted, used: UsageByVm = {}) => {
  const answer = admit({ limits: limit, used }, list)
  return { ...answer, used: answer.used ?? used }
}
const isWithin = (limit: ResourceLimits, used: ReturnType<typeof totalOf>): boolean =>
  resources.every((resource) => used[resource] <= (limit[resource] ?? Number.POSITIVE_INFINITY))

describe('admission to a quota', () => {
  it('admission to a quota never exceeds a limit, and refuses nothing that fits', () => {
    fc.assert(
      fc.property(limits, wanted, wanted, (limit, first, second) => {
        let used = after(limit, first).used
        assert.ok(isWithin(limit, totalOf(used)))
        for (const each of second) {
          const { used: next, refused } = after(limit, [each], used)
          assert.ok(isWithin(limit, totalOf(next)))
          if (!(each[0] in used))
            assert.equal(refused.has(each[0]), firstExcess(limit, totalOf(used), each[1]) !== undefined)
          used = next
        }
      }),
    )
  })

  it('admission to a quota that is repeated changes nothing', () => {
    fc.assert(
      fc.property(limits, wanted, (limit, list) => {
        const { used, refused } = after(limit, list)
        const kept = Object.entries(used).map(
          ([uid, [cpu, memoryMiB, macos]]) => [uid, { cpu, memoryMiB, macos }] as const,
        )
        assert.equal(admit({ limits: limit, used }, kept).used, undefined)
        for (const uid of Object.keys(used))
          assert.ok(!refused.has(uid) || list.filter(([each]) => each === uid).length > 1)
      }),
    )
  })

  it('admission to a quota continues after a VM that does not fit', () => {
    const small = { cpu: 1, memoryMiB: 1_024, macos: 0 }
    const { used, refused } = after({ cpu: 4 }, [
      ['large', { ...small, cpu: 8 }],
      ['small', small],
    ])
    assert.deepEqual([Object.keys(used), [...refused.keys()]], [['small'], ['large']])
    assert.deepEqual(used, { small: taken(small) })
  })

  it('the refusal by a quota names the limit with readable amounts', () => {
    const texts = (limit: ResourceLimits): string[] => {
      const used = { vms: 2, cpu: 38, memoryMiB: 61_440, macos: 2 }
      const excess = firstExcess(limit, used, { cpu: 4, memoryMiB: 8_192, macos: 1 })
      return excess ? [excessText('svc-ios', excess)] : []
    }
    assert.deepEqual(texts({ vms: 2 }), ['Quota of svc-ios reached: 2 of 2 VMs in use'])
    assert.deepEqual(texts({ cpu: 40 }), ['Quota of svc-ios reached: 38 of 40 cores in use; 4 requested'])
    assert.deepEqual(texts({ memoryMiB: 65_536 }), [
      'Quota of svc-ios reached: 60 GiB of 64 GiB memory in use; 8 GiB requested',
    ])
    assert.deepEqual(texts({ macos: 2 }), ['Quota of svc-ios reached: 2 of 2 macOS seats in use'])
    assert.deepEqual(texts({ vms: 3, cpu: 42, memoryMiB: 69_632, macos: 3 }), [])
  })

  it('a limit below the current use is named with both amounts', () => {
    assert.deepEqual(tooLow({ vms: 1, cpu: 8 }, { ...nothing, vms: 2, cpu: 8 }), [
      { field: 'vms', message: 'vms is below use: 2 VMs in use, limit 1' },
    ])
  })
})
