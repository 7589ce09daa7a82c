// A VM that takes over a slot of a pool is reported as running once its claim is done. Until then the slot's guest has another
// address, and a connection to the VM's port could reach another program.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { describe, it } from 'node:test'
import { AgentRig } from '../../test/support/rigs/agent-rig.ts'
import { scriptedDriver } from '../../test/support/stand-ins/scripted-driver.ts'
import { type Driver, PortTaken } from '../drivers/driver.ts'

describe('VM from a slot', () => {
  it('a VM from a slot is starting until its claim is done, even if its port is taken', async () => {
    await using rig = await AgentRig.make()
    const reached = Promise.withResolvers<void>()
    const judged = Promise.withResolvers<void>()
    using _ = { [Symbol.dispose]: judged.resolve }
    const claim = async () => {
      reached.resolve()
      await judged.promise
      return {}
    }
    const warm: Driver['warm'] = { prepare: async () => true, park: async () => undefined, claim }
    await (await rig.launch({ driver: { ...scriptedDriver(rig.world), warm } })).ready
    await rig.server.fulfilled(rig.server.want({ uid: 's', isSlot: true }))
    const desired = rig.server.want({ uid: 'a', slot: 's' })
    await reached.promise
    const under = await rig.server.until('a', ({ operation }) => operation?.kind === 'claim')
    assert.deepEqual([under.power, under.booted], ['starting', undefined])
    // Assigning other ports has this effect.
    judged.reject(new PortTaken([8_822]))
    const report = await rig.server.fulfilled(desired)
    assert.equal(report.power, 'running')
    const told = rig.server.history.filter(({ uid }) => uid === 'a')
    assert.deepEqual(
      told.filter(({ power, generation }) => power === 'running' && generation === 0),
      [],
    )
    assert.ok(rig.world.calls.includes('destroy s'), 'the slot was not discarded')
  })

  it('a VM that does not hold its port gets no connection: no data reaches another program on that port', async () => {
    await using rig = await AgentRig.make()
    let isHeld = false
    const heard: string[] = []
    const asked: unknown[][] = []
    const stranger = net.createServer((socket) =>
      socket
        .on('data', (data) => heard.push(String(data)))
        .on('error', () => undefined)
        .write('SSH-2.0-stranger\r\n'),
    )
    using _ = { [Symbol.dispose]: () => void stranger.close() }
    await once(stranger.listen(0, '127.0.0.1'), 'listening')
    const { port } = stranger.address() as net.AddressInfo
    const holds = async (...[{ uid }, ...door]: Parameters<NonNullable<Driver['ports']>['holds']>) => {
      asked.push([uid, ...door])
      return isHeld
    }
    await (await rig.launch({ driver: { ...scriptedDriver(rig.world), ports: { holds } } })).ready
    await rig.server.fulfilled(rig.server.want({ uid: 'a', ssh: port }))
    const tunnel = await rig.server.dial('a', 'ssh')
    using __ = { [Symbol.dispose]: () => void tunnel.destroy() }
    const said: string[] = []
    tunnel.on('data', (data) => said.push(String(data))).on('error', () => undefined)
    tunnel.write('secret')
    await Promise.race([once(tunnel, 'end'), once(tunnel, 'data')])
    assert.deepEqual([said, heard, asked], [[], [], [['a', port, '127.0.0.1']]])
    isHeld = true
    const mine = await rig.server.dial('a', 'ssh')
    assert.equal(String(await once(mine, 'data')), 'SSH-2.0-stranger\r\n')
    mine.destroy()
  })
})
