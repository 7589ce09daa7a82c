// Pools on a whole service, over the API.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { PoolRig } from '../../../test/support/rigs/pool-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

describe('pools of warm VMs', () => {
  let rig: PoolRig
  before(async () => {
    rig = await PoolRig.start([{ cpu: 8 }])
  })
  after(() => rig?.[Symbol.asyncDispose]())

  it('a pool boots VMs that are not listed, and a matching deployment takes one, which is replaced', async () => {
    await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 2, maxIdle: 3 })
    await rig.full(2)
    assert.deepEqual((await rig.call('GET', '/vms')).items, [])
    assert.deepEqual((await rig.call('GET', '/nodes')).items[0].vms, [])
    const slots = rig.slots.map(([uid]) => uid)
    const estimate = await rig.call('POST', '/vms/estimate', { vmConfig: 'small' })
    assert.equal(estimate.message, 'Would take a warm VM of pool warm on node-0')
    const vm = await rig.call('POST', '/vms', { name: 'a', vmConfig: 'small', labels: { team: 'ios' }, ttl: '2h' })
    assert.equal(vm.warm, 'warm')
    assert.equal(vm.status, 'Running')
    assert.equal(vm.ip, '127.0.0.1')
    assert.deepEqual(vm.labels, { team: 'ios' })
    const mine = rig.taken.get(vm.uid) ?? ''
    assert.ok(slots.includes(mine))
    await rig.full(2)
    const { hits, misses } = await rig.pool()
    assert.deepEqual({ hits, misses }, { hits: 1, misses: 0 })
    await rig.call('DELETE', '/vms/a')
    await eventually(() => assert.deepEqual(rig.vmsOnDisk().length, 2))
    assert.ok(!rig.vmsOnDisk().includes(mine), 'the slot is left on the disk')
  })

  it('a deployment that differs from the pool, or opts out, is deployed cold', async () => {
    await rig.full(2)
    const others = [
      { cpu: 2 },
      { noWarm: true },
      { cold: true },
      { reservedPorts: '9000:80' },
      { userdata: 'ZWNobw==' },
      { displayWidth: 800 },
    ]
    for (const other of others) {
      const vm = await rig.call('POST', '/vms', { vmConfig: 'small', ...other })
      assert.equal(vm.warm, undefined, JSON.stringify(other))
      await rig.call('DELETE', `/vms/${vm.name}`)
    }
    assert.equal((await rig.pool()).hits, 1)
  })

  it('a slot is evicted for a waiting VM, and returns when that is deleted', async () => {
    await rig.full(2)
    const vm = await rig.call('POST', '/vms', { name: 'large', image: 'tiny-amd64', cpu: 8, memory: 1 })
    assert.equal(vm.status, 'Running')
    await eventually(async () => assert.match((await rig.pool()).reason, /cores/))
    await rig.call('DELETE', '/vms/large')
    await rig.full(2)
  })

  it('slots of a cordoned node are removed, and a node with slots cannot be removed', async () => {
    await rig.full(2)
    assert.equal(await rig.status('DELETE', '/nodes/node-0'), 409)
    await rig.call('POST', '/nodes/node-0/cordon', {})
    await eventually(() => assert.deepEqual(rig.slots, []), 20_000)
    await rig.call('POST', '/nodes/node-0/uncordon', {})
    await rig.full(2)
  })

  it('slots that are too old are replaced', async () => {
    await rig.full(2)
    const before = rig.slots.map(([uid]) => uid)
    await rig.call('PUT', '/pools/warm', { maxAge: '1m' })
    rig.service.clock.nowMs += 61_000
    rig.nudge()
    await eventually(() => {
      const now = rig.slots.filter(([, { slot }]) => slot.readyAt !== undefined).map(([uid]) => uid)
      assert.equal(now.length, 2)
      assert.ok(!now.some((uid) => before.includes(uid)))
    }, 20_000)
  })

  it('a rotated pool replaces all of its slots, a few at a time', async () => {
    await rig.call('PUT', '/pools/warm', { maxAge: '12h' })
    await rig.full(2)
    const before = rig.slots.map(([uid]) => uid)
    const { removed } = await rig.call('POST', '/pools/warm/rotate')
    const had = removed.Rotated ?? 0
    await eventually(() => {
      const now = rig.slots.filter(([, { slot }]) => slot.readyAt !== undefined).map(([uid]) => uid)
      assert.equal(now.length, 2)
      assert.ok(!now.some((uid) => before.includes(uid)))
    }, 20_000)
    await eventually(async () => assert.equal((await rig.pool()).removed.Rotated, had + 2))
  })

  it('a drained pool has no slots until it is resumed', async () => {
    await rig.full(2)
    assert.equal((await rig.call('POST', '/pools/warm/drain')).paused, true)
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
    const { ready, reason, removed } = await rig.pool()
    assert.deepEqual(
      { ready, reason, drained: removed.Drained },
      { ready: 0, reason: 'The pool is drained', drained: 2 },
    )
    await rig.call('PUT', '/pools/warm', { maxIdle: 4 })
    assert.match((await rig.pool()).reason, /drained/)
    await rig.call('PUT', '/pools/warm', { paused: false })
    await rig.full(2)
  })

  it('a schedule sets the number of slots until its next entry fires', async () => {
    const minute = new Date(rig.service.clock.nowMs).getUTCMinutes()
    const at = (minutes: number) => `${(minute + minutes) % 60} * * * *`
    const schedule = [
      { cron: at(0), minIdle: 1 },
      { cron: at(2), timeZone: 'UTC', minIdle: 3 },
    ]
    await rig.call('PUT', '/pools/warm', { schedule, maxIdle: 3 })
    await eventually(async () => assert.equal((await rig.pool()).minIdleNow, 1))
    assert.equal((await rig.pool()).schedule[0].timeZone, 'UTC')
    rig.service.clock.nowMs += 120_000
    rig.nudge()
    await rig.full(3)
    await rig.call('PUT', '/pools/warm', { schedule: [] })
    assert.equal((await rig.pool()).minIdleNow, 2)
  })

  it('a slot is ready once the command of its pool succeeds in it', async () => {
    await rig.call('PUT', '/pools/warm', { readyCommand: 'false' })
    await rig.call('POST', '/pools/warm/drain')
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
    await rig.call('PUT', '/pools/warm', { paused: false })
    await eventually(async () => assert.equal((await rig.pool()).starting, 2))
    await eventually(() => assert.equal(rig.vmsOnDisk().length, 2))
    assert.deepEqual([(await rig.pool()).ready, (await rig.pool()).readyCommand], [0, 'false'])
    await rig.call('PUT', '/pools/warm', { readyCommand: '' })
    await rig.call('POST', '/pools/warm/drain')
    await eventually(() => assert.deepEqual(rig.vmsOnDisk(), []), 20_000)
    await rig.call('PUT', '/pools/warm', { paused: false })
    await rig.full(2)
    assert.equal((await rig.pool()).readyCommand, undefined)
  })

  it('slots that are kept as memory use no cores of their node until they are handed out', async () => {
    await rig.call('PUT', '/pools/warm', { state: 'memory' })
    const parked = () => rig.slots.filter(([, { cpu, slot }]) => cpu === 0 && slot.readyAt !== undefined)
    await eventually(async () => assert.equal(parked().length, 2), 20_000)
    await rig.full(2)
    assert.equal((await rig.pool()).state, 'memory')
    // A VM of all cores fits without evicting a slot, but no slot can be resumed beside it.
    await rig.call('POST', '/vms', { name: 'large', image: 'tiny-amd64', cpu: 8, memory: 1, noWarm: true })
    assert.equal(parked().length, 2)
    await rig.call('POST', '/vms?wait=false', { name: 'a', vmConfig: 'small' })
    await eventually(async () =>
      assert.match((await rig.call('GET', '/vms/a')).conditions?.[0]?.message ?? '', /cores/),
    )
    assert.equal(parked().length, 2)
    await rig.call('DELETE', '/vms/large')
    await eventually(async () => assert.equal((await rig.call('GET', '/vms/a')).status, 'Running'))
    const vm = await rig.call('GET', '/vms/a')
    assert.equal(vm.warm, 'warm')
    await rig.full(2)
    assert.equal((await rig.call('GET', '/nodes')).items[0].availableCpu, 7)
    await rig.call('DELETE', '/vms/a')
    await rig.call('PUT', '/pools/warm', { state: 'running' })
    await eventually(async () => assert.equal(parked().length, 0), 20_000)
    await rig.full(2)
    assert.ok(rig.slots.every(([, { cpu }]) => cpu === 1))
  })

  it('a deleted pool leaves no slots behind', async () => {
    await rig.call('DELETE', '/pools/warm')
    await eventually(async () => {
      assert.deepEqual(rig.slots, [])
      assert.deepEqual(rig.vmsOnDisk(), [])
    }, 20_000)
  })

  it('invalid requests are refused and change nothing', async () => {
    const refusals: readonly (readonly [object, number, RegExp])[] = [
      [{ name: 'x', config: 'small', minIdle: 3, maxIdle: 2 }, 422, /minIdle is 3, but maxIdle is 2/],
      [{ name: 'x', config: 'none' }, 404, /none not found/],
      [{ name: 'X!', config: 'small' }, 422, /not a valid name/],
      [{ name: 'x', config: 'small', maxAge: 'soon' }, 422, /is not a duration of at least a minute/],
      [{ name: 'x', config: 'small', minIdle: -1 }, 422, /minIdle/],
      [{ name: 'x', config: 'small', state: 'asleep' }, 400, /state/],
      [{ name: 'x', config: 'small', readyCommand: 'x'.repeat(1_025) }, 422, /readyCommand/],
      [{ name: 'x', config: 'small', schedule: [{ cron: '0 0 30 2 *', minIdle: 1 }] }, 422, /never fires/],
      [
        { name: 'x', config: 'small', schedule: [{ cron: '0 0 * * *', timeZone: 'Mars/Olympus', minIdle: 1 }] },
        422,
        /Unknown time zone/,
      ],
      [
        { name: 'x', config: 'small', maxIdle: 2, schedule: [{ cron: '0 0 * * *', minIdle: 3 }] },
        422,
        /is 3, but maxIdle is 2/,
      ],
      [{ name: 'x', config: 'small', schedule: [{ cron: 'soon', minIdle: 3 }] }, 422, /use five fields/],
    ]
    for (const [body, status, message] of refusals) {
      const answer = await rig.ask('POST', '/pools', body)
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.text, message)
    }
    const narrow = await rig.ask('POST', '/pools', { name: 'x', config: 'small', minIdle: 3, maxIdle: 2 })
    assert.match(narrow.text, /"hint":"Set a lower minIdle \(--min-idle\), or a higher maxIdle \(--max-idle\)"/)
    await rig.call('POST', '/vmconfigs', { name: 'far', image: 'ghcr.io/team/linux:v1', cpu: 1 })
    const far = await rig.ask('POST', '/pools', { name: 'x', config: 'far' })
    assert.match(far.text, /"hint":"Run svc3 remote-image pull ghcr\.io\/team\/linux:v1 -n svc-default, and create/)
    assert.deepEqual((await rig.call('GET', '/pools')).items, [])
    for (const verb of ['rotate', 'drain']) assert.equal(await rig.status('POST', `/pools/none/${verb}`), 404)
  })
})
