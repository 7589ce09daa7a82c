// Forty jobs of GitHub Actions on three servers whose leader is killed, twice: while they run, and when it has registered a runner
// that no record knows yet. test/long/runner-faults.long.test.ts has more of both.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RunnerCluster } from '../support/rigs/runner-cluster.ts'
import { eventually } from '../support/tools/eventually.ts'

it('forty jobs get one VM each, and nothing of them is left, though two leaders are killed', {
  timeout: 300_000,
}, async (test) => {
  await using cluster = await RunnerCluster.start(10)
  cluster.guests.jobMs = 2_000
  await eventually(() => assert.ok(cluster.github.isHeard), 60_000)
  await cluster.dieAt('runners.registered')
  const over = new AbortController()
  const jobs = Array.from({ length: 40 }, () => cluster.github.queueJob())
  const waiting = cluster.watchJobs(AbortSignal.timeout(200_000))
  await eventually(() => assert.equal(cluster.deaths, 1), 60_000)
  await eventually(() => assert.ok(!cluster.github.isHeard), 30_000)
  const killing = cluster.killLeaders(4_000, over.signal)
  const longestMs = await waiting.finally(() => over.abort())
  test.diagnostic(
    `${1 + (await killing)} leaders killed; longest wait beside free capacity ${Math.round(longestMs)} ms`,
  )
  assert.deepEqual(cluster.github.violations, [])
  assert.deepEqual(
    new Set(jobs.map(({ result, ranOn }) => `${result} on ${ranOn.length}`)),
    new Set(['succeeded on 1']),
  )
  await eventually(async () => assert.deepEqual(await cluster.leftovers(), []), 30_000)
})
