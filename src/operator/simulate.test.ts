// Knobs of simulated nodes, as people write them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSimulation } from './simulate.ts'

describe('--simulate', () => {
  it('--simulate takes times, chances and limits', () => {
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

  it('--simulate refuses what is no knob, or no value', () => {
    for (const text of ['boot', 'boot=soon', 'fail-start=2', 'fail-nothing=1', 'max-vms=-1', 'x=1'])
      assert.throws(() => parseSimulation(text, 'simulated'), /Invalid --simulate/, text)
  })

  it('--simulate is refused unless the driver is the simulated one', () => {
    assert.throws(() => parseSimulation('boot=2s', 'qemu'), /--simulate needs --driver simulated/)
  })
})
