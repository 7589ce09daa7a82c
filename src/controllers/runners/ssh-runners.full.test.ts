// Runners that are started by SSH, in cold and in warm VMs, and by the next leader. The guests are simulated;
// test/e2e/runner-pools.full.test.ts logs in to real ones.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RunnerRig } from '../../../test/support/rigs/runner-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

const ssh = { user: 'admin', password: 'guest-secret' }

it('runners that are started by SSH run one job each, also when the leader changes', async () => {
  await using rig = await RunnerRig.start()
  await rig.create({ idleFor: '10s', ssh })
  assert.equal((await rig.pool()).sshUser, 'admin')
  rig.guests.jobMs = 300
  const jobs = Array.from({ length: 10 }, () => rig.github.queueJob())
  for (let round = 0; round < 3; round++) {
    await eventually(() => assert.ok(jobs.filter(({ state }) => state === 'completed').length > round), 20_000)
    await rig.rest()
    rig.drive()
  }
  await rig.quiet()
  assert.deepEqual(new Set(jobs.map(({ ranOn }) => ranOn.length)), new Set([1]))
  const { collections } = rig.service.services
  assert.equal(collections.runnerCredentials.list().length, 2)
  assert.ok(!JSON.stringify([await rig.pool(), rig.service.logLines]).includes('guest-secret'))
  await rig.call('PUT', '/runnerpools/ios', { firstBoot: true })
  assert.equal((await rig.pool()).sshUser, undefined)
  const job = rig.github.queueJob()
  await rig.quiet()
  assert.equal(job.ranOn.length, 1)
  await rig.call('DELETE', '/runnerpools/ios')
  await eventually(() => assert.deepEqual(collections.runnerCredentials.list(), []))
})

it('runners that are started by SSH take the warm VMs of a pool of their configuration', async () => {
  await using rig = await RunnerRig.start(4)
  await rig.call('POST', '/pools', { name: 'warm', config: 'small', minIdle: 3, maxIdle: 3 })
  const warm = (): Promise<{ ready: number; hits: number }> => rig.call('GET', '/pools/warm')
  await eventually(async () => assert.equal((await warm()).ready, 3), 20_000)
  await rig.create({ idleFor: '10s', ssh })
  // Warm VMs count as capacity for runners; one more core is free.
  await eventually(async () => assert.equal((await rig.pool()).capacity, 4))
  rig.guests.jobMs = 500
  const jobs = Array.from({ length: 3 }, () => rig.github.queueJob())
  await rig.quiet()
  assert.deepEqual(new Set(jobs.map(({ ranOn }) => ranOn.length)), new Set([1]))
  assert.equal((await warm()).hits, 3)
})

it('a guest that cannot be logged in to is a reason that people see', async () => {
  await using rig = await RunnerRig.start()
  rig.sshProblem = 'The guest refused user admin or its password'
  await rig.create({ idleFor: '10s', ssh })
  const job = rig.github.queueJob()
  await eventually(async () => {
    const { condition, ended } = await rig.pool()
    assert.equal(condition.reason, 'RunnersFail')
    assert.match(condition.message, /The guest refused user admin/)
    assert.equal(ended.StartFailed, 5)
  }, 30_000)
  assert.deepEqual([rig.github.names.size, job.state], [0, 'assigned'], 'no configuration was used up')
  rig.sshProblem = undefined
  rig.aheadMs += 31_000
  await rig.call('PUT', '/runnerpools/ios', { ssh })
  await rig.quiet()
})
