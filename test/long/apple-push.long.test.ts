// A VM on Apple silicon, on the stand-in for tart, is pushed as tart writes images, runs on another host with what it had, and
// grows there; pushed as this service does, it is deployed once more. The first half is in test/long/apple.long.test.ts.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type AppleFleet, away, home, startAppleFleet } from '../support/rigs/apple-fleet.ts'

let fleet: AppleFleet
before(async () => {
  fleet = await startAppleFleet()
})
after(() => fleet[Symbol.asyncDispose]())

describe('a VM on Apple silicon that is pushed (on the stand-in for tart)', { timeout: 900_000 }, () => {
  const shape = ['-c', '1', '-m', '0.3']

  it('a VM on Apple silicon that is pushed (on the stand-in for tart) is written as tart writes images, and runs on another host with what it had', async () => {
    const { dev, ok, image, into, startAgent } = fleet
    await ok('vm', 'deploy', 'a', '-i', image('mac:v1'), ...shape)
    {
      using guest = await into('a')
      await guest.run('echo first > /home/admin/file; sync')
    }
    await ok('vm', 'push', 'a', image('tart:v1'), '--format', 'tart', '--wait')
    const { body } = await dev.call('GET', `/api/v1/namespaces/${home}/pushjobs`)
    const [job] = body.items as { format: string; status: string }[]
    assert.deepEqual([job?.format, job?.status], ['tart', 'Succeeded'])
    await ok('vm', 'delete', 'a')
    await startAgent('far', away)
    await ok('vm', 'deploy', 'd', '-i', image('tart:v1'), ...shape, '-n', away)
    using guest = await into('d', away)
    assert.equal(await guest.run('cat /home/admin/file'), 'first')
    await guest.run('echo own > /home/admin/own; sync')
  })

  it('a VM on Apple silicon that is pushed (on the stand-in for tart) has a larger disk when that is asked for, with all that was on it', async () => {
    const { ok, into } = fleet
    await ok('vm', 'resize', 'd', '2', '-n', away)
    using guest = await into('d', away)
    assert.equal(await guest.run('cat /home/admin/file /home/admin/own'), 'first\nown')
    assert.equal(await guest.run('cat /sys/class/block/vda/size'), String((2 * 2 ** 30) / 512))
  })

  it('a VM on Apple silicon that is pushed (on the stand-in for tart) is written as this service does, and deployed at home with all of it', async () => {
    const { ok, image, into } = fleet
    await ok('vm', 'push', 'd', image('ours:v1'), '--wait', '-n', away)
    await ok('vm', 'deploy', 'e', '-i', image('ours:v1'), ...shape)
    using guest = await into('e')
    assert.equal(await guest.run('cat /home/admin/file /home/admin/own'), 'first\nown')
  })
})
