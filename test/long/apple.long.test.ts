// Nodes of Apple silicon as people use them, on the stand-in for tart (test/support/stand-ins/tart): a VM is deployed, saved,
// deployed again and committed; its agent is killed. What is pushed, pulled elsewhere and grown is in test/long.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { greeting } from '../support/guests/guest.ts'
import { type AppleFleet, away, startAppleFleet } from '../support/rigs/apple-fleet.ts'
import { eventually } from '../support/tools/eventually.ts'

let fleet: AppleFleet
before(async () => {
  fleet = await startAppleFleet()
})
after(() => fleet[Symbol.asyncDispose]())

const bootId = 'cat /proc/sys/kernel/random/boot_id'
const address = 'cat /sys/class/net/eth0/address'

describe('a VM on Apple silicon (on the stand-in for tart)', { timeout: 600_000 }, () => {
  const shape = ['-c', '1', '-m', '0.3']

  it('a VM on Apple silicon (on the stand-in for tart) is deployed from a registry, and has a shell and a screen', async () => {
    const { ok, image, vm, into } = fleet
    const [node] = JSON.parse(await ok('node', 'list', '-o', 'json'))
    assert.match(JSON.stringify(node), /tart 2\.35\.0-stand-in/)
    await ok('vm', 'deploy', 'a', '-i', image('mac:v1'), ...shape)
    const { ip, vnc } = await vm('a')
    assert.equal(await greeting(ip, vnc), 'RFB 003.008\n')
    using guest = await into('a')
    await guest.run('echo first > /home/admin/file; sync')
    assert.equal(await guest.run('uname -m'), 'aarch64')
  })

  it('a VM on Apple silicon (on the stand-in for tart) outlives its agent, and is reached again after another one has come', async () => {
    const { into, vm, killAgent, startAgent } = fleet
    using guest = await into('a')
    const boot = await guest.run(bootId)
    const { ip, ssh } = await vm('a')
    await killAgent('mac')
    assert.equal(await greeting(ip, ssh), undefined, 'nobody forwards')
    await startAgent('mac', 'svc-default')
    using again = await into('a')
    assert.equal(await again.run(bootId), boot)
  })

  it('a VM on Apple silicon (on the stand-in for tart) is saved while it runs, and goes on where it was; another one has what it had', async () => {
    const { ok, svc3, into } = fleet
    using before = await into('a')
    const boot = await before.run(bootId)
    assert.match(await ok('vm', 'save', 'a', 'saved', '--wait'), /is Ready/)
    using guest = await into('a')
    assert.equal(await guest.run(bootId), boot, 'it has not booted')
    await ok('vm', 'deploy', 'b', '-i', 'saved', ...shape)
    using other = await into('b')
    assert.equal(await other.run('cat /home/admin/file'), 'first')
    assert.notEqual(await other.run(address), await guest.run(address))
    const third = await svc3(['vm', 'deploy', 'c', '-i', 'saved', ...shape, '--no-wait'])
    assert.equal(third.code, 0, third.stderr)
    const limit = /Node mac is at Apple’s limit of 2 macOS VMs per host/
    await eventually(
      async () => assert.match((await svc3(['vm', 'list', 'c'])).stderr, limit, 'Apple allows two'),
      30_000,
    )
    await ok('vm', 'commit', 'b', '--wait')
  })

  it('a VM on Apple silicon (on the stand-in for tart) is one of two on its host, also for another agent there, which offers what is left', async () => {
    const { ok, svc3, startAgent, vm, into } = fleet
    await startAgent('second', away, 'mac')
    const offered = async () => JSON.parse(await ok('node', 'list', 'second', '-n', away, '-o', 'json'))
    const [full] = [await offered()].flat()
    assert.equal(full.maxMacosVms, 0, 'two run there already')
    const waiting = await svc3(['vm', 'deploy', 'x', '-i', 'saved', ...shape, '-n', away, '--no-wait'])
    assert.equal(waiting.code, 0, waiting.stderr)
    const why = /Node second cannot run more macOS VMs: others on its host reach Apple’s limit/
    await eventually(async () => assert.match((await svc3(['vm', 'list', 'x', '-n', away])).stderr, why), 30_000)
    await ok('vm', 'delete', 'b', 'c')
    // It looks at its host every half minute.
    await eventually(async () => assert.ok((await vm('x', away)).ssh > 0), 120_000)
    using guest = await into('x', away)
    assert.equal(await guest.run('cat /home/admin/file'), 'first')
  })

  it('a VM on Apple silicon (on the stand-in for tart) has a new serial number where that is asked for', async () => {
    const { ok, svc3, into } = fleet
    await ok('vm', 'delete', 'x', '-n', away)
    const refused = await svc3(['vm', 'deploy', 's', '-i', 'saved', ...shape, '--system-serial', 'C02'])
    assert.match(refused.stderr, /is for Intel-based VMs only.*Use "random" for a new one/s)
    await ok('vm', 'deploy', 's', '-i', 'saved', ...shape, '--system-serial', 'random')
    using guest = await into('s')
    assert.equal(await guest.run('cat /home/admin/file'), 'first')
  })
})
