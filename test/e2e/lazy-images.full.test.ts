// VMs that run before their image has arrived, with a real server, a real agent and real guests: what a guest reads is
// what was saved, while the image arrives and while processes are killed; then the VM uses the node's copy, and nothing
// is left over.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { socketFolderOf } from '../../src/agent/images/arrivals.ts'
import { openGuest, type SshPlace } from '../support/guests/guest.ts'
import { filesIn } from '../support/processes/dev-server.ts'
import { LazyRig, mib, readAll, vms } from '../support/rigs/lazy-rig.ts'
import type { SlowLink } from '../support/stand-ins/slow-link.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

/** Of random bytes in the image: what is not compressed away, and has to come. */
const dataMib = isAllTested ? 160 : 64
/** So slow that most of the image, three times as much, is still to come when a guest has booted on a slow machine. */
const whileDeploying = 4 * mib
const whileBooting = 3 * mib
/** Chunks that come at once, while no guest waits. */
const fetchesAtOnce = 4
let rig: LazyRig
let link: SlowLink

before(
  async () => {
    rig = await LazyRig.make(dataMib)
    link = rig.link
    await rig.startAgent('empty', { apiUrl: rig.slowUrl })
  },
  { timeout: 600_000 },
)

after(() => rig[Symbol.asyncDispose]())

/** Files in its guest are as in the image, but for this word in the first. */
async function isUnchangedBut(word: string, place: SshPlace): Promise<void> {
  using guest = await openGuest(place, { user: 'root' })
  assert.equal((await guest.run('cat /data0')).trim(), word)
  const others = rig.sums.split('\n').filter((line) => line !== '' && !line.endsWith('/data0'))
  assert.deepEqual((await guest.run('sha256sum /data1 /data2 /data3', 240_000)).trim().split('\n'), others)
}

describe('a VM that runs before its image has arrived', { timeout: 1_800_000 }, () => {
  it('a VM that runs before its image has arrived reads what was saved, shares the fetch, and moves to the copy', async () => {
    link.bytesPerSecond = whileDeploying
    const before = link.bytes
    const one = await rig.deploy('one')
    const byThen = link.bytes - before
    assert.ok(byThen < dataMib * mib, `${byThen} bytes had come`)
    const { stdout } = await rig.svc3(['vm', 'list'])
    assert.match(stdout, /one/)
    await eventually(async () =>
      assert.match((await rig.imageReady('one'))?.message ?? '', /^image \d+ %, .* of .*\/s$/),
    )
    const two = await rig.deploy('two')
    link.bytesPerSecond = 8 * mib
    using guest = await openGuest(one, { user: 'root' })
    const boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
    using other = await openGuest(two, { user: 'root' })
    assert.equal(await guest.run('sha256sum /data0 /data1 /data2 /data3', 240_000), rig.sums)
    link.bytesPerSecond = Infinity
    await eventually(async () => {
      for (const name of ['one', 'two']) assert.equal((await rig.imageReady(name))?.status, 'True', name)
    }, 240_000)
    // Each chunk once: memory, kernel and initrd are among them.
    const kept = path.join(rig.dataOf('empty'), 'images/content/blobs')
    const sizes = (await filesIn(kept)).map(async (name) => (await fs.stat(path.join(kept, name))).size)
    const imageBytes = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0)
    const came = link.bytes - before
    assert.ok(came < 1.15 * imageBytes, `${came} bytes came for two VMs of an image of ${imageBytes}`)
    assert.equal(await other.run(readAll, 240_000), rig.sums)
    assert.equal(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot)
  })

  it('a VM that runs before its image has arrived is deleted in the middle and leaves nothing', async () => {
    await rig.empty('empty')
    link.bytesPerSecond = whileDeploying
    await rig.deploy('one')
    assert.equal((await rig.imageReady('one'))?.status, 'False')
    await rig.delete('one')
    await eventually(async () => {
      const names = await fs.readdir(path.join(rig.dataOf('empty'), 'images'))
      assert.deepEqual(
        names.filter((name) => name.startsWith('.') || name.startsWith('sha256-')),
        [],
      )
    })
    assert.deepEqual(await fs.readdir(path.join(rig.dataOf('empty'), 'vms')), [])
    assert.deepEqual(await fs.readdir(socketFolderOf(rig.dataOf('empty'))), [])
    const at = link.bytes
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    assert.ok(link.bytes - at < 2 * mib, 'nothing is fetched for nobody')
  })

  it('a VM that runs before its image has arrived reads what was saved, whoever is killed meanwhile', async () => {
    await rig.empty('empty')
    link.bytesPerSecond = whileDeploying
    const three = await rig.deploy('three')
    link.bytesPerSecond = whileBooting
    using guest = await openGuest(three, { user: 'root' })
    const boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
    const reading = guest.run('sha256sum /data3 /data1 /data0 /data2 | sort -k2', 600_000)
    // Nothing of it arrives now, however fast it comes.
    link.isCorrupting = true
    link.bytesPerSecond = Infinity
    await eventually(async () => {
      const known = await rig.imageReady('three')
      assert.match(known?.message ?? '', /waiting: the server sent something else/)
      assert.equal(known?.reason, 'Waiting')
    }, 60_000)
    const { stderr } = await rig.svc3(['vm', 'list'])
    assert.match(stderr, /VM three is running; image \d+ %, .* waiting: /)
    link.bytesPerSecond = mib
    link.isCorrupting = false
    for (let round = 0; round < (isAllTested ? 10 : 3); round++) {
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1_500))
      if (round % 2 === 0) {
        await rig.kill('empty')
        await rig.startAgent('empty')
      } else {
        await rig.server.kill('SIGKILL')
        await rig.startServer()
      }
    }
    link.bytesPerSecond = Infinity
    assert.equal(await reading, rig.sums)
    await eventually(async () => assert.equal((await rig.imageReady('three'))?.status, 'True'), 240_000)
    assert.equal(await guest.run(readAll, 240_000), rig.sums)
    assert.equal(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot)
  })

  // The last one: the image is another one afterwards.
  it('a VM that runs before its image has arrived is saved and committed without waiting for the rest of it', async () => {
    await rig.empty('empty')
    link.bytesPerSecond = whileDeploying
    const one = await rig.deploy('one')
    link.bytesPerSecond = whileBooting
    {
      using guest = await openGuest(one, { user: 'root' })
      await guest.run('echo saved >/data0; sync')
      // As many chunks as ever come at once, and from now on the rest would take a quarter of an hour.
      await eventually(() => assert.ok(link.held >= fetchesAtOnce, `${link.held} chunks are on their way`), 60_000)
      link.bytesPerSecond = mib / 8
      await rig.call('POST', `${vms}/one/save`, { imageName: 'changed' })
      await rig.isReady('changed')
      await guest.run('echo committed >/data0; sync')
      await rig.call('POST', `${vms}/one/commit`, {})
      await rig.isReady('big')
    }
    assert.equal((await rig.imageReady('one'))?.status, 'False')
    link.bytesPerSecond = Infinity
    await rig.empty('empty')
    await Promise.all([
      rig.deploy('two', { image: 'changed' }).then((two) => isUnchangedBut('saved', two)),
      rig.deploy('three').then((three) => isUnchangedBut('committed', three)),
    ])
  })
})
