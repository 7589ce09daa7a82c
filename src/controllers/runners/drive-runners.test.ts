// The short path of runner pools on a whole service, against a stand-in of GitHub; drive-runners.full.test.ts has the rest.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RunnerRig } from '../../../test/support/rigs/runner-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

it('ten jobs of GitHub Actions get ten VMs, four at a time, and each leaves two events', async () => {
  await using rig = await RunnerRig.start()
  await rig.create({ idleFor: '10s' })
  const jobs = Array.from({ length: 10 }, () => rig.github.queueJob())
  await rig.quiet()
  assert.equal(new Set(jobs.flatMap(({ ranOn }) => ranOn)).size, 10)
  assert.ok(rig.github.mostOnline <= 4, `${rig.github.mostOnline} runners at once`)
  await eventually(async () => {
    const { items } = await rig.call('GET', '/events?limit=1000')
    const count = (reason: string) => items.filter((event: { reason: string }) => event.reason === reason).length
    assert.deepEqual([count('JobStarted'), count('JobCompleted')], [10, 10])
  })
})
