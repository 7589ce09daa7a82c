// A VM that resumes from the memory of an image is reported as running when the driver has configured its guest. What the guest
// lacks is reported as a warning, also by a later agent.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import { scriptedDriver, type World } from '../../test/support/stand-ins/scripted-driver.ts'
import type { Driver } from '../drivers/driver.ts'

const note = 'The guest may still have the clock of the saved VM'

/** Its guests resume before `start` returns. */
function resuming(world: World): { readonly driver: Driver; readonly reached: Promise<void>; release(): void } {
  const driver = scriptedDriver(world)
  const reached = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const start: Driver['start'] = async (handle, vm, signal) => {
    await driver.start(handle, vm, signal)
    reached.resolve()
    await released.promise
    return { note, toldMs: 5_000 }
  }
  return { driver: { ...driver, start }, reached: reached.promise, release: released.resolve }
}

describe('VM from memory', () => {
  it('a VM from memory is not running before the driver has configured its guest, and what the guest lacks is a warning', async () => {
    await using rig = await AgentRig.make()
    const { driver, reached, release } = resuming(rig.world)
    await (await rig.launch({ driver })).ready
    const desired = rig.server.want({ uid: 'a' })
    await reached
    // A change that the hypervisor reports during the work is not reported to the server.
    rig.world.becomes('a', { state: 'running' })
    await rig.server.until('a', ({ operation }) => operation?.phase === 'starting')
    assert.ok(!rig.server.history.some(({ power }) => power === 'running'))
    release()
    const report = await rig.server.fulfilled(desired)
    assert.deepEqual([report.power, report.warning], ['running', note])
  })

  it("a VM from memory that an agent takes over has the driver's warning until it is started again", async () => {
    await using rig = await AgentRig.make()
    await (await rig.launch()).ready
    await rig.deploy('a')
    await rig.stop()
    rig.world.becomes('a', { state: 'running', note })
    await (await rig.launch()).ready
    const report = await rig.server.until('a', ({ warning }) => warning !== undefined)
    assert.deepEqual([report.power, report.warning], ['running', note])
    await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'stopped' }))
    const anew = await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'running' }))
    assert.deepEqual([anew.power, anew.warning], ['running', undefined])
  })
})
