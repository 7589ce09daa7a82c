// Pools under many concurrent requests, and with failing slots.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PoolRig } from '../../../test/support/rigs/pool-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { fillPools } from './fill-pools.ts'
import { Placements } from './placements.ts'
import { scheduleVms } from './schedule-vms.ts'

describe('many requests on one pool', () => {
  it('two hundred requests for twenty slots: twenty hits, the others cold, no slot twice, none left', async () => {
    await using rig = await PoolRig.start([{ cpu: 120 }, { cpu: 120 }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 20, maxIdle: 20 })
    await rig.full(20)
    await rig.call('PUT', '/pools/warm', { paused: true })
    const vms = await Promise.all(Array.from({ length: 200 }, () => rig.call('POST', '/vms', { vmConfig: 'small' })))
    assert.equal(vms.filter(({ warm }) => warm === 'warm').length, 20)
    const taken = [...rig.taken.values()]
    assert.equal(new Set(taken).size, 20)
    assert.equal(taken.length, 20)
    const { hits, misses, ready } = await rig.pool()
    assert.deepEqual({ hits, misses, ready }, { hits: 20, misses: 180, ready: 0 })
    await Promise.all(vms.map(({ name }) => rig.call('DELETE', `/vms/${name}`)))
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
    assert.deepEqual(rig.slots, [])
  })

  it('a slot that a leader gave to a VM before it died belongs to that VM under the next leader', async () => {
    await using rig = await PoolRig.start([{ cpu: 8 }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await rig.full(1)
    await rig.call('PUT', '/pools/warm', { paused: true })
    await Promise.all(rig.loops.map((loop) => loop.stop()))
    const { uid } = await rig.call('POST', '/vms?wait=false', { name: 'a', vmConfig: 'small' })
    const [[slotUid, { slot, memoryMiB }] = assert.fail()] = rig.slots
    const { ssh, screenshare } = slot
    const { services } = rig.service
    const { vms } = services.collections
    const place = { node: 'node-0', ip: '127.0.0.1', memoryMiB, ssh, screenshare, slot: slotUid }
    await vms.change(vms.key('svc-default', 'a'), (vm) => vm && { ...vm, place, warm: 'warm' })
    assert.equal((await rig.call('GET', '/nodes')).items[0].availableCpu, 7)
    rig.loops.push(scheduleVms(services, new Placements(services, services.presence)))
    await eventually(async () => assert.equal((await rig.call('GET', '/vms/a')).status, 'Running'))
    await eventually(() => assert.deepEqual(rig.slots, []))
    assert.deepEqual([...rig.taken], [[uid, slotUid]])
    assert.deepEqual(rig.vmsOnDisk(), [slotUid])
    const other = await rig.call('POST', '/vms', { name: 'b', vmConfig: 'small' })
    assert.equal(other.warm, undefined)
  })

  it('an existing pool is filled when a leader begins', async () => {
    await using rig = await PoolRig.start([{ cpu: 8 }])
    await Promise.all(rig.loops.splice(0).map((loop) => loop.stop()))
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 2 })
    const { services } = rig.service
    rig.loops.push(fillPools(services, new Placements(services, services.presence)))
    await eventually(async () => assert.equal((await rig.pool()).ready, 2), 10_000)
    // Simulated ports are shared by the whole process.
    await rig.call('DELETE', '/pools/warm')
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
  })

  it('a pool rests after failed slots, and has the reason in its status', async () => {
    await using rig = await PoolRig.start([{ cpu: 8, knobs: { failAt: { start: 1 } } }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await eventually(async () => assert.match((await rig.pool()).reason ?? '', /simulated failure at start/), 20_000)
    await eventually(() => assert.deepEqual(rig.slots, []), 20_000)
  })

  it('a slot that cannot be handed over is removed, and its VM is deployed cold', async () => {
    await using rig = await PoolRig.start([{ cpu: 8, knobs: { failAt: { claim: 'once' } } }])
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 1 })
    await rig.full(1)
    const vm = await rig.call('POST', '/vms', { name: 'a', vmConfig: 'small' })
    assert.equal(vm.status, 'Running')
    await rig.call('DELETE', '/vms/a')
    await rig.call('DELETE', '/pools/warm')
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
  })
})
