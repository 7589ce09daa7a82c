// Neither the deletion of a VM nor an agent that stops waits for the guest's shutdown.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import { scriptedDriver, type World } from '../../test/support/stand-ins/scripted-driver.ts'
import type { Driver } from '../drivers/driver.ts'

const graceMs = 600_000

/** Its guests ignore a shutdown, so a stop takes the whole grace period. */
function stubborn(world: World): { readonly driver: Driver; readonly asked: Promise<void> } {
  const driver = scriptedDriver(world)
  const asked = Promise.withResolvers<void>()
  const stop: Driver['stop'] = async (handle, options) => {
    asked.resolve()
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, graceMs)
    options.signal?.addEventListener('abort', () => resolve())
    await promise.finally(() => clearTimeout(timer))
    await driver.stop(handle, options)
  }
  return { driver: { ...driver, stop }, asked: asked.promise }
}

describe('guest that does not shut down', () => {
  for (const [what, change] of [
    ['a stop', { power: 'stopped' }],
    ['a resize', { diskGb: 20 }],
  ] as const)
    it(`a guest that does not shut down does not delay the deletion of its VM during ${what}`, async () => {
      await using rig = await AgentRig.make()
      const { driver, asked } = stubborn(rig.world)
      await (await rig.launch({ driver })).ready
      await rig.deploy('a')
      rig.server.want({ uid: 'a', ...change })
      await asked
      const report = await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'deleted' }))
      assert.equal(report.power, 'removed')
      assert.deepEqual([rig.world.vms.size, rig.world.count('grow a'), rig.world.count('start a')], [0, 0, 1])
    })

  it('a guest that does not shut down does not delay an agent that stops', async () => {
    await using rig = await AgentRig.make()
    const { driver, asked } = stubborn(rig.world)
    await (await rig.launch({ driver })).ready
    await rig.deploy('a')
    const desired = rig.server.want({ uid: 'a', diskGb: 20 })
    await asked
    await rig.stop()
    assert.equal(rig.world.count('grow a'), 0)
    // The next agent continues the stop.
    await rig.launch()
    const report = await rig.server.fulfilled(desired)
    assert.deepEqual([report.power, report.diskGb], ['running', 20])
  })
})
