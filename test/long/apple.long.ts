// Nodes of Apple silicon as people use them, on the stand-in for tart (test/support/tart-stand-in): a VM is deployed, saved,
// deployed again and committed; its agent is killed. What is pushed, pulled elsewhere and grown is in test/long.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type AppleFleet, startAppleFleet } from '../support/apple-fleet.ts'
import { eventually } from '../support/eventually.ts'
import { greeting } from '../support/guest.ts'

let fleet: AppleFleet
before(async () => {
  fleet = await startAppleFleet()
})
after(() => fleet[Symbol.asyncDispose]())

const bootId = 'cat /proc/sys/kernel/random/boot_id'
const address = 'cat /sys/class/net/eth0/address'

describe('a VM on Apple silicon (on the stand-in for tart)', { timeout: 600_000 }, () => {
  const shape = ['-c', '1', '-m', '0.3']

  it('is deployed from a registry, and has a shell and a screen', async () => {
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

  it('outlives its agent, and is reached again after another one has come', async () => {
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

  it('is saved while it runs, and goes on where it was; another one has what it had', async () => {
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
    const limit = /node "mac" runs 2 VMs with macOS, which is its limit/
    await eventually(
      async () => assert.match((await svc3(['vm', 'list', 'c'])).stderr, limit, 'Apple allows two'),
      30_000,
    )
    await ok('vm', 'commit', 'b', '--wait')
  })
})
