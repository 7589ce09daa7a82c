// What clients were told of a service under random faults is what one service could have told them, one request after the
// other. Half a minute of it; half an hour is in test/long. A failure prints its seed, which makes the same faults and requests.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { historySeconds, makeHistory } from '../support/history/run.ts'

for (const [kind, seconds] of [
  ['sqlite', 10],
  ['etcd', 20],
] as const)
  it(`the history of a service on ${kind} under random faults is linearizable, its watches without gaps, its sessions never back in time`, {
    timeout: 400_000,
  }, async (t) => {
    const made = await makeHistory(kind, historySeconds(seconds), (text) => t.diagnostic(text))
    t.diagnostic(JSON.stringify(made))
    assert.ok(made.acknowledged > 10 && made.faults > 0, JSON.stringify(made))
  })
