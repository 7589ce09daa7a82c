// The index of VMs by node, kept current from their records.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { placedVm, vmRecord } from '../../../bench/records.ts'
import { openMemory } from '../memory.ts'
import { openCollections } from './collections.ts'
import type { VmRecord } from './fleet-records.ts'
import { isOnNode, nodeUseOf } from './node-vms.ts'

const nodes = ['a', 'b']
const on = (index: number, node: string, ssh = index): VmRecord => placedVm(index, { name: node }, ssh)
const failed = (record: VmRecord): VmRecord => ({
  ...record,
  observed: { generation: 1, power: 'failed', hasRun: false },
})

const states: Readonly<Record<string, (index: number, node: string) => VmRecord | null>> = {
  waiting: (index) => vmRecord(index),
  placed: on,
  otherPorts: (index, node) => on(index, node, index + 100),
  failed: (index, node) => failed(on(index, node)),
  gone: () => null,
}

describe('the VMs of nodes', () => {
  it('the index equals a count of all records, and reports each node that changed', async () => {
    const step = fc.record({
      index: fc.integer({ min: 1, max: 3 }),
      node: fc.constantFrom(...nodes),
      state: fc.constantFrom(...Object.keys(states)),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        await using collections = await openCollections(openMemory())
        const { vms, nodeVms } = collections
        const seen = (): Record<string, unknown> =>
          Object.fromEntries(
            nodes.map((node) => [node, vms.list().flatMap(({ value }) => (value.place?.node === node ? [value] : []))]),
          )
        const told = new Set<string>()
        nodeVms.subscribe((touched) => {
          for (const node of touched) told.add(node)
        })
        const usesOn = (node: string) => [...nodeVms.on(node)].map(({ value }) => JSON.stringify(nodeUseOf(value)))
        const uses = () => nodes.map((node) => JSON.stringify(usesOn(node)))
        for (const { index, node, state } of steps) {
          const before = uses()
          told.clear()
          await vms.change(vms.key('svc-default', `vm-${index}`), () => states[state]?.(index, node) ?? null)
          for (const [at, each] of nodes.entries()) {
            const found = [...nodeVms.on(each)].map(({ value }) => value)
            assert.deepEqual(
              new Set(found.map(({ uid }) => uid)),
              new Set((seen()[each] as VmRecord[]).map(({ uid }) => uid)),
            )
            for (const vm of found) assert.equal(nodeVms.of(each, vm.uid)?.value, vm)
            if (before[at] !== uses()[at]) assert.ok(told.has(each), `${each} was not told of`)
          }
        }
      }),
      { numRuns: 40 },
    )
  })

  it('a failed deployment uses nothing of its node once its agent has reported that', () => {
    const one = failed(on(1, 'a'))
    assert.deepEqual([isOnNode(one), nodeUseOf(one)], [false, undefined])
    const awaited = { ...one, desired: { ...one.desired, generation: 2, power: 'deleted' as const } }
    for (const record of [awaited, on(1, 'a')]) assert.deepEqual([isOnNode(record), nodeUseOf(record)?.cpu], [true, 1])
  })

  it('the VM that took a slot is found by the slot', async () => {
    await using collections = await openCollections(openMemory())
    const vm = on(1, 'a')
    const place = { ...(vm.place ?? assert.fail()), slot: 'warm' }
    await collections.vms.create('svc-default', vm.name, { ...vm, place })
    assert.equal(collections.nodeVms.takerOf('a', 'warm')?.uid, vm.uid)
    assert.equal(collections.nodeVms.takerOf('b', 'warm'), undefined)
  })
})
