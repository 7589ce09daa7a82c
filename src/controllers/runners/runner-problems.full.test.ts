// Failures between a runner pool and GitHub: late, missing or repeated news, sessions of other processes, lasting refusals. Each
// is a visible condition, deletes nothing, and ends by itself with its cause.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { RunnerRig } from '../../../test/support/rigs/runner-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

const conditionIs = (rig: RunnerRig, reason: string): Promise<void> =>
  eventually(async () => {
    const { condition } = await rig.pool()
    assert.equal(condition.reason, reason, condition.message)
  }, 20_000)

/** An ordinary job. */
async function runsOne(rig: RunnerRig): Promise<void> {
  const job = rig.github.queueJob()
  await rig.quiet()
  assert.equal(job.ranOn.length, 1)
}

describe('news of jobs that is not as it should be', () => {
  it('a message that cannot be acknowledged is repeated, and its jobs run and are recorded once', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    // More failures than retries of a call, so the session ends.
    rig.github.faults.push({ match: /DELETE .*_queue/, as: 500, times: 9 })
    const jobs = Array.from({ length: 3 }, () => rig.github.queueJob())
    await rig.quiet()
    assert.deepEqual(
      jobs.map(({ ranOn }) => ranOn.length),
      [1, 1, 1],
    )
    await eventually(() => assert.equal(rig.github.faults[0]?.times, 0))
    await eventually(async () => {
      const { items } = await rig.call('GET', '/events?limit=1000')
      const count = (reason: string) => items.filter((event: { reason: string }) => event.reason === reason).length
      assert.deepEqual([count('JobStarted'), count('JobCompleted')], [3, 3])
    })
  })

  it('jobs without news run by the counts alone', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    for (const type of ['JobAssigned', 'JobStarted', 'JobCompleted']) rig.github.untold.push({ type, times: 2 })
    const jobs = [rig.github.queueJob(), rig.github.queueJob()]
    // Counts arrive with a message.
    const told = rig.github.queueJob()
    await rig.quiet()
    for (const { ranOn } of [...jobs, told]) assert.equal(ranOn.length, 1)
  })

  it('a late report of the end of a job changes its result, and no other runner', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    rig.github.late.push({ type: 'JobCompleted', times: 1, ms: 2_500 })
    const late = rig.github.queueJob()
    await rig.quiet()
    const next = rig.github.queueJob()
    await rig.quiet()
    assert.deepEqual([late.ranOn.length, next.ranOn.length], [1, 1])
    await eventually(async () => {
      const { items } = await rig.call('GET', '/runnerjobs')
      assert.deepEqual(
        items.map(({ result }: { result: string }) => result),
        ['succeeded', 'succeeded'],
      )
    }, 10_000)
  })

  it('a job that GitHub assigns again under another id runs once', async () => {
    await using rig = await RunnerRig.start(8, { requeueMs: 1_500 })
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    rig.guests.mute = 1
    const job = rig.github.queueJob()
    const { id } = job
    await eventually(() => assert.notEqual(job.id, id), 10_000)
    rig.aheadMs += 181_000
    await rig.call('PUT', '/runnerpools/ios', { connectWithin: '3m' })
    await rig.quiet(60_000)
    assert.equal(job.ranOn.length, 1)
    assert.equal((await rig.pool()).ended.NotConnected, 1)
  })

  it('refused tokens are renewed, and no job is lost or duplicated', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    for (const match of [/generatejitconfig/, /DELETE .*agents/, /DELETE .*_queue/, /GET .*_queue/, /GET .*agents/])
      rig.github.faults.push({ match, as: 401, times: 1 })
    const jobs = Array.from({ length: 4 }, () => rig.github.queueJob())
    await rig.quiet()
    for (const { ranOn } of jobs) assert.equal(ranOn.length, 1)
    assert.deepEqual(new Set(rig.github.faults.map(({ times }) => times)), new Set([0]))
  })
})

describe('a session that another program holds', () => {
  it('is waited for, and earlier runners are removed in the meantime', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'Ready')
    rig.guests.jobMs = 3_000
    const job = rig.github.queueJob()
    await eventually(() => assert.equal(job.state, 'running'), 20_000)
    // Only a started job has a known end.
    await eventually(async () => assert.equal((await rig.pool()).running, 1))
    await rig.rest()
    const release = rig.github.occupy()
    rig.drive()
    // Adopted from its record, because no session is open.
    await rig.quiet()
    assert.match((await rig.pool()).condition.message, /previous session/)
    rig.aheadMs += 301_000
    await conditionIs(rig, 'SessionActive')
    assert.equal(rig.github.sets.size, 1)
    release()
    await conditionIs(rig, 'Ready')
    rig.guests.jobMs = 50
    await runsOne(rig)
  })
})

describe('refusals of GitHub that last', () => {
  it('a wrong key and a revoked installation are reported, delete nothing, and end by themselves', async () => {
    const pair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
    const { privateKey, publicKey } = pair()
    const pem = (key: typeof privateKey) => key.export({ type: 'pkcs1', format: 'pem' }) as string
    await using rig = await RunnerRig.start(8, { appKey: publicKey, tokenSeconds: 61 })
    const app = { appId: 'Iv1.abc', installationId: '7' }
    await rig.create({ idleFor: '10s', credential: { ...app, privateKey: pem(pair().privateKey) } })
    await conditionIs(rig, 'Unauthorized')
    assert.match((await rig.pool()).condition.message, /JSON web token/)
    await rig.call('PUT', '/runnerpools/ios', { credential: { ...app, privateKey: pem(privateKey) } })
    await conditionIs(rig, 'Ready')
    rig.guests.jobMs = 4_000
    const job = rig.github.queueJob()
    await eventually(() => assert.equal(job.state, 'running'), 20_000)
    const [vm] = rig.vms
    // The token of the service expires and cannot be renewed.
    const revoked = { match: /access_tokens/, as: 404, times: 1_000, body: { message: 'Not Found' } }
    rig.github.faults.push(revoked)
    rig.aheadMs += 3_600_000
    rig.github.endSessions()
    await conditionIs(rig, 'NotFound')
    assert.match((await rig.pool()).condition.message, /token of the GitHub App installation.*404/)
    assert.deepEqual([rig.github.sets.size, rig.vms[0]?.uid], [1, vm?.uid])
    revoked.times = 0
    await conditionIs(rig, 'Ready')
    await rig.quiet()
    assert.equal(job.result, 'succeeded')
    await runsOne(rig)
  })

  it('an unknown group and a taken name are reported, and end by themselves', async () => {
    await using rig = await RunnerRig.start()
    const foreign = rig.github.addSet('ios', ['theirs'])
    await rig.create({ idleFor: '10s' })
    await conditionIs(rig, 'NameTaken')
    assert.match((await rig.pool()).condition.message, /Scale set ios exists in group Default with other labels/)
    assert.ok(rig.github.sets.has(foreign))
    rig.github.sets.delete(foreign)
    await conditionIs(rig, 'Ready')
    await runsOne(rig)
    await rig.create({ name: 'macs', group: 'macs' })
    await eventually(async () => {
      const { condition } = await rig.call('GET', '/runnerpools/macs')
      assert.equal(condition.reason, 'UnknownGroup')
      assert.match(condition.message, /Runner group macs not found/)
    })
    rig.github.groups.set('macs', 4)
    await eventually(async () => {
      assert.equal((await rig.call('GET', '/runnerpools/macs')).condition.reason, 'Ready')
    }, 20_000)
  })

  it('an outage of GitHub for an hour costs no runner and no job', async () => {
    await using rig = await RunnerRig.start()
    await rig.create({ minIdle: 1 })
    await conditionIs(rig, 'Ready')
    rig.guests.jobMs = 6_000
    const job = rig.github.queueJob()
    await eventually(async () => {
      assert.equal((await rig.pool()).running, 1)
      assert.equal(rig.vms.filter(({ observed }) => observed.power === 'running').length, 2)
    }, 20_000)
    const before = rig.vms.map(({ uid }) => uid).toSorted()
    rig.github.isAway = true
    await conditionIs(rig, 'Unreachable')
    rig.aheadMs += 3_600_000
    await rig.call('PUT', '/runnerpools/ios', { max: 3 })
    await eventually(async () => assert.equal((await rig.pool()).max, 3))
    assert.deepEqual(rig.vms.map(({ uid }) => uid).toSorted(), before)
    assert.deepEqual((await rig.pool()).ended, {})
    rig.github.isAway = false
    await conditionIs(rig, 'Ready')
    await rig.call('PUT', '/runnerpools/ios', { minIdle: 0, idleFor: '10s' })
    await rig.quiet(60_000)
    assert.deepEqual([job.result, job.ranOn.length], ['succeeded', 1])
  })
})
