// Knobs of simulated nodes, as people write them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
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

  it('--simulate is refused by svc3 dev and svc3 agent unless their driver is the simulated one', async () => {
    for (const command of ['dev', 'agent']) {
      const { exitCode, stderr } = await run([command, '--simulate', 'boot=2s'])
      assert.equal(exitCode, 2, command)
      assert.match(stderr, /--simulate needs --driver simulated/, command)
    }
  })
})
