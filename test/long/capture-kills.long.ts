// 200 random kills of an agent that captures: see test/support/random-kills.ts.
import { describe, it } from 'node:test'
import { killAtRandom } from '../support/random-kills.ts'

describe('an agent that captures', { timeout: 900_000 }, () => {
  it('is killed 200 times, and every image is right', () => killAtRandom(200))
})
