// Runner pools while their leader is killed: two hundred jobs on twenty VMs with a kill -9 every ten seconds of leading, and forty
// at each step from news to the end of a runner. Every job gets one VM, all are done, and nothing is left.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { RunnerCluster } from '../support/rigs/runner-cluster.ts'
import { eventually } from '../support/tools/eventually.ts'

const slots = 20
const timeoutMs = 300_000

/** In the order of a runner's life. */
const points = [
  'runners.stored',
  'runners.acknowledged',
  'runners.recorded',
  'runners.registered',
  'runners.noted',
  'runners.deployed',
  'runners.removed',
  'runners.cleared',
  'runners.ending',
  'runners.forgotten',
]

describe('runner pools whose leader is killed', () => {
  let cluster: RunnerCluster
  before(async () => {
    cluster = await RunnerCluster.start(slots)
  })
  after(() => cluster?.[Symbol.asyncDispose]())

  const settled = async (jobs: RunnerCluster['github']['jobs']): Promise<void> => {
    assert.deepEqual(cluster.github.violations, [])
    assert.deepEqual(
      new Set(jobs.map(({ result, ranOn }) => `${result} on ${ranOn.length}`)),
      new Set(['succeeded on 1']),
    )
    await eventually(async () => assert.deepEqual(await cluster.leftovers(), []), 30_000)
  }

  it('200 jobs on 20 VMs are done once each, with a kill every 10 s, and nothing is left 30 s later', async (test) => {
    cluster.guests.jobMs = 4_000
    const over = new AbortController()
    const killing = cluster.killLeaders(10_000, over.signal)
    const jobs = Array.from({ length: 200 }, () => cluster.github.queueJob())
    const longestMs = await cluster.watchJobs(AbortSignal.timeout(timeoutMs)).finally(() => over.abort())
    const kills = await killing
    test.diagnostic(`${kills} leaders killed; longest wait beside free capacity ${Math.round(longestMs)} ms`)
    assert.ok(kills >= 3, `${kills} kills`)
    await settled(jobs)
    assert.ok(longestMs <= 5_000, `a job waited ${longestMs} ms beside free capacity`)
  })

  for (const point of points)
    it(`40 jobs are done once each when their leader dies at ${point}`, async (test) => {
      cluster.guests.jobMs = 500
      await eventually(() => assert.ok(cluster.github.isHeard), 60_000)
      const { deaths } = cluster
      await cluster.dieAt(point)
      const jobs = Array.from({ length: 40 }, () => cluster.github.queueJob())
      const longestMs = await cluster.watchJobs(AbortSignal.timeout(timeoutMs))
      test.diagnostic(`longest wait beside free capacity ${Math.round(longestMs)} ms`)
      await settled(jobs)
      assert.ok(cluster.deaths > deaths, `nothing died at ${point}`)
      assert.ok(longestMs <= 5_000, `a job waited ${longestMs} ms beside free capacity`)
    })
})
