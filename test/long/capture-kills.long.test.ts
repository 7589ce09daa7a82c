// 200 random kills of an agent that captures against a server that stays, and 200 of server and agent, real processes both:
// see test/support/rigs/random-kills.ts and random-cluster-kills.ts.
import { describe, it } from 'node:test'
import { killAtRandom } from '../support/rigs/random-kills.ts'
import { killClusterAtRandom } from './random-cluster-kills.ts'

describe('an agent that captures', { timeout: 900_000 }, () => {
  it('an agent that captures is killed 200 times, and every image is right', () => killAtRandom(200))
})

describe('a server and an agent that save and commit', { timeout: 2_400_000 }, () => {
  it('a server and an agent that save and commit are killed 200 times, and every image is right', async (t) => {
    t.diagnostic(JSON.stringify(await killClusterAtRandom(200)))
  })
})
