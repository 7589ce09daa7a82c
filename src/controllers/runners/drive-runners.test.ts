// One job on a whole service, against a stand-in of GitHub. The other cases are in drive-runners.full.test.ts.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { RunnerRig } from '../../../test/support/rigs/runner-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { StoreError } from '../../store/store.ts'

it('ten jobs of GitHub Actions get ten VMs, four at a time, and each leaves two events', async () => {
  await using rig = await RunnerRig.start()
  await rig.create({ idleFor: '10s' })
  const jobs = Array.from({ length: 10 }, () => rig.github.queueJob())
  await eventually(() => assert.equal(rig.vms[0]?.labels['svc3/runner-pool'], 'ios'))
  await rig.quiet()
  assert.equal(new Set(jobs.flatMap(({ ranOn }) => ranOn)).size, 10)
  assert.ok(rig.github.maxOnline <= 4, `${rig.github.maxOnline} runners at once`)
  await eventually(async () => {
    const { items } = await rig.call('GET', '/events?limit=1000')
    const count = (reason: string) => items.filter((event: { reason: string }) => event.reason === reason).length
    assert.deepEqual([count('JobStarted'), count('JobCompleted')], [10, 10])
  })
})

it('a store that is away while a runner is made is told in the log, and ends no server', async (t) => {
  await using rig = await RunnerRig.start()
  const { store, collections } = rig.service.services
  const update = store.update.bind(store)
  let refusals = 0
  t.mock.method(store, 'update', async (...asked: Parameters<typeof update>) => {
    // The write that registers the runner, and the one that records the failure.
    if (asked[0].startsWith(collections.runners.prefix) && refusals < 2) {
      refusals += 1
      throw new StoreError('Unavailable', 'etcd elects a leader')
    }
    return update(...asked)
  })
  await rig.create({ idleFor: '10s' })
  rig.github.queueJob()
  await eventually(
    () => assert.ok(rig.service.logLines.some((line) => /driving a runner pool failed/.test(line))),
    5_000,
  )
  assert.equal(refusals, 2)
})

it('a runner whose record is refused is tried again after a pause', async (t) => {
  await using rig = await RunnerRig.start()
  const { store, collections } = rig.service.services
  const create = store.create.bind(store)
  let refusals = 0
  const refusing = t.mock.method(store, 'create', async (...asked: Parameters<typeof create>) => {
    if (!asked[0].startsWith(collections.runners.prefix)) return create(...asked)
    refusals += 1
    throw new StoreError('Unavailable', 'etcd elects a leader')
  })
  await rig.create({ idleFor: '10s' })
  const job = rig.github.queueJob()
  await eventually(() => assert.ok(refusals > 0))
  await sleep(1_500)
  assert.ok(refusals <= 4, `${refusals} tries within 1.5 s`)
  refusing.mock.restore()
  await rig.quiet()
  assert.equal(job.ranOn.length, 1)
})
