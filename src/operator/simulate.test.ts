// Parsing of --simulate.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSimulation } from './simulate.ts'

describe('--simulate', () => {
  it('--simulate accepts times, probabilities and limits', () => {
    assert.deepEqual(
      parseSimulation('boot=2s,stop=50ms,max-vms=2,fail-start=0.1,fail-stop=once,lose-after=1m', 'simulated'),
      {
        bootMs: 2_000,
        stopMs: 50,
        maxVms: 2,
        loseAfterMs: 60_000,
        failAt: { start: 0.1, stop: 'once' },
      },
    )
    assert.deepEqual(parseSimulation(undefined, 'qemu'), {})
  })

  it('--simulate refuses unknown knobs and invalid values', () => {
    for (const text of ['boot', 'boot=soon', 'fail-start=2', 'fail-nothing=1', 'max-vms=-1', 'x=1'])
      assert.throws(() => parseSimulation(text, 'simulated'), /Invalid --simulate/, text)
  })

  it('--simulate is refused without the simulated driver', () => {
    assert.throws(() => parseSimulation('boot=2s', 'qemu'), /--simulate needs --driver simulated/)
  })
})
