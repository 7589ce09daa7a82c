// What owners have, followed change by change, beside a count of all of it.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { usageByOwner } from '../../rules/queue/shares.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { OwnerUsage } from './owner-usage.ts'

const none = { get: () => undefined } as unknown as Collections['nodes']

const change = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  owner: fc.constantFrom('ana', 'bo'),
  cpu: fc.constantFrom(1, 2),
  memoryMiB: fc.constantFrom(512, 1_024),
  os: fc.constantFrom('macos', 'linux'),
  state: fc.constantFrom('waits', 'placed', 'deleted', 'failed', 'gone'),
})

const record = ({ name, owner, cpu, memoryMiB, os, state }: typeof change extends fc.Arbitrary<infer T> ? T : never) =>
  ({
    name,
    namespace: 'one',
    owner,
    os,
    shape: { cpu },
    desired: { power: state === 'deleted' ? 'deleted' : 'running', generation: 1 },
    observed: { power: state === 'failed' ? 'failed' : 'running', generation: 1, hasRun: false },
    ...(state !== 'waits' && { place: { node: 'n', memoryMiB } }),
  }) as unknown as VmRecord

it('the usage of owners that is followed is that of a count of all VMs', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const usage = new OwnerUsage({ nodes: none })
      const counted = new Map<string, VmRecord>()
      for (const each of changes) {
        const vm = record(each)
        usage.note(each.name, each.state === 'gone' ? undefined : vm)
        if (each.state === 'placed') counted.set(each.name, vm)
        else counted.delete(each.name)
        assert.deepEqual(
          new Map([...usage.in('one')].sort()),
          new Map([...usageByOwner(counted.values(), () => undefined)].sort()),
        )
      }
    }),
    { numRuns: 500 },
  )
})
