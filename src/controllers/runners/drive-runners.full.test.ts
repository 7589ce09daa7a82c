// Runner pools on a whole service, against a stand-in of GitHub.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { RunnerRig } from '../../../test/support/rigs/runner-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

describe('runner pools', () => {
  let rig: RunnerRig
  before(async () => {
    rig = await RunnerRig.start()
    await rig.create({ idleFor: '10s' })
    await eventually(async () => assert.equal((await rig.pool()).condition.reason, 'Ready'))
  })
  after(() => rig?.[Symbol.asyncDispose]())

  it('every job gets a VM, which is deleted after it', async () => {
    const jobs = Array.from({ length: 10 }, () => rig.github.queueJob())
    await rig.quiet()
    assert.equal(new Set(jobs.flatMap(({ ranOn }) => ranOn)).size, 10)
    assert.ok(rig.github.maxOnline <= 4, `${rig.github.maxOnline} runners at once`)
    // A runner is counted right after its record is deleted.
    await eventually(async () => {
      const { ended, queueSeconds } = await rig.pool()
      // Counts of GitHub may be older than the end of a job here, and news of a short job later than the removal of its
      // runner, which then counts as idle. One VM too many is better than a job that waits.
      const { Idle: idle = 0, Finished: finished = 0, ...others } = ended
      assert.deepEqual(others, {})
      assert.ok(finished >= 7 && finished <= 10, `${finished} runners finished`)
      assert.ok(finished + idle >= 10 && finished + idle <= 14, `${finished} finished and ${idle} were idle`)
      assert.ok(queueSeconds.p95 >= 0)
    })
    const { items } = await rig.call('GET', '/runnerjobs')
    assert.deepEqual(new Set(items.map(({ state, result }: { state: string; result: string }) => `${state} ${result}`)), new Set(['Completed succeeded'])) // biome-ignore format: one line
    assert.match(items[0].link, /\/acme\/app\/actions$/)
  })

  it('the secrets of a pool and its runners are in no response and in no log', async () => {
    rig.github.queueJob()
    await eventually(() => assert.ok(rig.vms.length > 0))
    const texts = await Promise.all(
      ['/runnerpools', '/runnerpools/ios', '/vms', '/events', '/runnerjobs'].map((url) => rig.call('GET', url)),
    )
    for (const text of [JSON.stringify(texts), rig.service.logLines.join('\n')])
      assert.ok(!/ghp_standin|JITCONFIG|eyJydW5uZXJ/.test(text))
    await rig.quiet()
  })

  it('the unreported end of a job is noticed by its VM, and one that is reported early interrupts nothing', async () => {
    rig.github.untold.push({ type: 'JobCompleted', times: 2 }, { type: 'JobStarted', times: 1 })
    rig.guests.jobMs = 5_000
    const jobs = [rig.github.queueJob(), rig.github.queueJob(), rig.github.queueJob()]
    await eventually(() => assert.ok(jobs.every(({ state }) => state === 'running')), 20_000)
    for (const job of jobs) rig.github.tellCompleted(job)
    await rig.quiet()
    rig.guests.jobMs = 50
    assert.deepEqual(jobs.map(({ result, ranOn }) => [result, ranOn.length]), Array(3).fill(['succeeded', 1])) // biome-ignore format: one line
  })

  it('the next leader finishes the jobs of one that stopped', async () => {
    rig.guests.jobMs = 500
    const jobs = Array.from({ length: 12 }, () => rig.github.queueJob())
    for (let round = 0; round < 4; round++) {
      await eventually(() => assert.ok(jobs.filter(({ state }) => state === 'completed').length > round), 20_000)
      await rig.rest()
      rig.drive()
    }
    await rig.quiet(40_000)
    rig.guests.jobMs = 50
    assert.deepEqual(new Set(jobs.map(({ ranOn }) => ranOn.length)), new Set([1]))
  })

  it('lost responses and transient refusals lose and duplicate no job', async () => {
    for (const match of [/generatejitconfig/, /DELETE .*agents/, /DELETE .*_queue/, /GET .*_queue/])
      for (const as of ['lost', 503, 429, 'empty'] as const)
        if (as !== 'empty' || match.source.startsWith('GET')) rig.github.faults.push({ match, as, times: 1 })
    const jobs = Array.from({ length: 6 }, () => rig.github.queueJob())
    await rig.quiet(60_000)
    assert.deepEqual(new Set(jobs.map(({ ranOn }) => ranOn.length)), new Set([1]))
    assert.deepEqual(rig.github.faults.filter(({ times }) => times > 0), []) // biome-ignore format: one line
  })

  it('a VM whose runner does not connect is replaced under another name, and the pool rests after five in a row', async () => {
    rig.guests.broken = 2
    const job = rig.github.queueJob()
    await rig.quiet()
    assert.equal((await rig.pool()).ended.GuestEnded, 2)
    assert.equal(job.ranOn.length, 1)
    rig.guests.mute = 1
    rig.github.queueJob()
    await eventually(async () => assert.ok(rig.vms.some(({ observed }) => observed.power === 'running')))
    await eventually(async () => assert.equal((await rig.pool()).starting, 1))
    rig.aheadMs += 181_000
    await rig.call('PUT', '/runnerpools/ios', { max: 4, connectWithin: '3m' })
    await rig.quiet(40_000)
    assert.equal((await rig.pool()).ended.NotConnected, 1)
    rig.guests.broken = 5
    rig.github.queueJob()
    await eventually(async () => assert.equal((await rig.pool()).condition.reason, 'RunnersFail'), 20_000)
    assert.match(
      (await rig.pool()).condition.message,
      /5 runners failed in a row.*powered off before its runner connected/,
    )
    rig.aheadMs += 31_000
    await rig.call('PUT', '/runnerpools/ios', { minIdle: 0 })
    await rig.quiet()
  })

  it('revoked credentials are a condition of the pool and delete nothing, and new ones end it', async () => {
    rig.github.badCredentials = true
    await rig.call('PUT', '/runnerpools/ios', { credential: { token: 'ghp_other' } })
    await eventually(async () => assert.equal((await rig.pool()).condition.reason, 'Unauthorized'), 20_000)
    assert.match((await rig.pool()).condition.message, /Bad credentials/)
    assert.equal(rig.github.sets.size, 1)
    rig.github.badCredentials = false
    await rig.call('PUT', '/runnerpools/ios', { credential: { token: 'ghp_standin' } })
    await eventually(async () => assert.equal((await rig.pool()).condition.reason, 'Ready'), 20_000)
    rig.github.queueJob()
    await rig.quiet()
  })

  it('idle runners wait for jobs; a drained pool has none, and resumes', async () => {
    await rig.call('PUT', '/runnerpools/ios', { minIdle: 2 })
    await eventually(async () => assert.equal((await rig.pool()).idle, 2), 20_000)
    assert.equal((await rig.call('POST', '/runnerpools/ios/drain')).paused, true)
    await rig.quiet()
    const waiting = rig.github.queueJob()
    assert.equal((await rig.pool()).condition.reason, 'Drained')
    assert.equal(waiting.state, 'queued')
    await rig.call('PUT', '/runnerpools/ios', { paused: false, minIdle: 0 })
    await rig.quiet()
  })

  it('a deleted pool lets its jobs end first, and leaves nothing at GitHub', async () => {
    rig.guests.jobMs = 1_500
    const job = rig.github.queueJob()
    await eventually(() => assert.equal(job.state, 'running'), 20_000)
    assert.equal((await rig.ask('DELETE', '/runnerpools/ios')).status, 200)
    assert.equal((await rig.ask('PUT', '/runnerpools/ios', { max: 2 })).status, 409)
    await eventually(async () => assert.equal((await rig.ask('GET', '/runnerpools/ios')).status, 404), 20_000)
    assert.equal(job.result, 'succeeded')
    await rig.quiet()
    assert.equal(rig.github.sets.size, 0)
    const { collections } = rig.service.services
    assert.deepEqual([collections.runnerCredentials.list(), collections.runnerJobs.list()], [[], []])
  })
})
