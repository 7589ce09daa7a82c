// Reads without a quorum of etcd: every server still serves them, and says how old they are. test/long repeats it
// twenty times.
import { it } from 'node:test'
import { loseQuorum } from '../support/rigs/no-quorum.ts'

it('with two of three members of etcd dead, all servers read on and refuse writes', { timeout: 300_000 }, () =>
  loseQuorum(0),
)
