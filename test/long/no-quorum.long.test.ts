// Reads without a quorum of etcd: every server still serves them, and says how old they are, each of twenty times.
import { it } from 'node:test'
import { loseQuorum } from '../support/rigs/no-quorum.ts'

for (let round = 0; round < 20; round++)
  it(
    `with two of three members of etcd dead, all servers read on and refuse writes, round ${round}`,
    { timeout: 300_000 },
    () => loseQuorum(round),
  )
