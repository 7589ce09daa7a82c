// The driver for Apple silicon is killed where most is at stake; at every other point in test/long/apple-crash.long.test.ts.
import { describe, it } from 'node:test'
import { dieAt } from './apple-crash.ts'

describe('a driver for Apple silicon that is killed', () => {
  it('while the VM stands still for a capture: it goes on', () => dieAt('capture', 'apple-still'))
})
