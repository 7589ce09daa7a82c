// Pools under many requests at once, and with slots that fail.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PoolRig } from '../../test/support/rigs/pool-rig.ts'
import { eventually } from '../../test/support/tools/eventually.ts'

describe('many requests on one pool', () => {
  it('two hundred requests on twenty slots: twenty hits, the others cold, no slot twice, nothing left over', async () => {
    await using rig = await PoolRig.start([{ cpu: 120 }, { cpu: 120 }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 20, maxIdle: 20 })
    await rig.full(20)
    await rig.call('PUT', '/pools/warm', { paused: true })
    const vms = await Promise.all(Array.from({ length: 200 }, () => rig.call('POST', '/vms', { vmConfig: 'small' })))
    assert.equal(vms.filter(({ warm }) => warm === 'warm').length, 20)
    const froms = rig.allocations.flatMap(([, { from }]) => from ?? [])
    assert.equal(new Set(froms).size, 20)
    assert.equal(froms.length, 20)
    const { hits, misses, ready } = await rig.pool()
    assert.deepEqual({ hits, misses, ready }, { hits: 20, misses: 180, ready: 0 })
    await Promise.all(vms.map(({ name }) => rig.call('DELETE', `/vms/${name}`)))
    await eventually(async () => assert.deepEqual(await rig.folders(), []), 20_000)
    assert.deepEqual(rig.allocations, [])
  })

  it('slots that fail let their pool rest, and it says why', async () => {
    await using rig = await PoolRig.start([{ cpu: 8, knobs: { failAt: { start: 1 } } }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await eventually(async () => assert.match((await rig.pool()).reason ?? '', /simulated failure at start/), 20_000)
    await eventually(() => assert.deepEqual(rig.allocations, []), 20_000)
  })

  it('a slot that cannot be handed over goes, and its VM is deployed in its place', async () => {
    await using rig = await PoolRig.start([{ cpu: 8, knobs: { failAt: { claim: 'once' } } }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await rig.full(1)
    const vm = await rig.call('POST', '/vms', { name: 'a', vmConfig: 'small' })
    assert.equal(vm.status, 'Running')
    await rig.call('DELETE', '/vms/a')
    await rig.call('DELETE', '/pools/warm')
    await eventually(async () => assert.deepEqual(await rig.folders(), []), 20_000)
  })
})
