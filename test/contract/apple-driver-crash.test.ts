// The driver for Apple silicon is killed where most is at stake; at every other point in test/long/apple-crash.long.test.ts.
import { describe, it } from 'node:test'
import { dieAt } from './apple-crash.ts'

describe('Apple driver that is killed', () => {
  it('an Apple driver that is killed while the VM stands still for a capture lets it go on', () =>
    dieAt('capture', 'apple-still'))
})
