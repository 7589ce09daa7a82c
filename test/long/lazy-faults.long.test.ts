// What goes wrong while a VM runs on an image that arrives, with real guests: sources that die or send something else,
// a node without room, kills. The guest's reads wait and resume, it reads exactly what was saved, and users see what it
// waits for.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openGuest } from '../support/guests/guest.ts'
import { filesIn } from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { LazyRig, mib, namespace, readAll, vms } from '../support/rigs/lazy-rig.ts'
import { type SlowLink, startSlowLink } from '../support/stand-ins/slow-link.ts'
import { eventually } from '../support/tools/eventually.ts'

const dataMib = 64
let rig: LazyRig
let registry: RegistryProcess
/** Between everybody and the registry. */
let way: SlowLink
let reference: string
const withPeers = { words: ['--peer-port', '0'] }

/** The agent's images are on a small disk of their own, which only it sees. */
const onSmallDisk = [
  'unshare',
  ...(process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']),
  ...['sh', '-c', 'mount -t tmpfs -o size=1200m tmpfs "$0" && exec "$@"'],
]

before(
  async () => {
    // Only images for arm64 are pulled by nodes themselves.
    rig = await LazyRig.make(dataMib, 'arm64', async (making) => {
      registry = await startRegistry({ folder: path.join(making.folder, 'registry'), hasPassword: true })
      way = await startSlowLink({ host: '127.0.0.1', port: Number(new URL(registry.server).port) }, Infinity)
      reference = `127.0.0.1:${way.port}/team/big:1`
      const login = { server: `http://127.0.0.1:${way.port}`, ...registryUser, allowInsecure: true }
      await making.call('POST', `${namespace}/secrets/registrycredentials/add`, login)
      const pushed = await making.svc3(['vm', 'push', 'made', reference, '--wait'])
      assert.equal(pushed.code, 0, pushed.stderr)
    })
    const images = path.join(rig.dataOf('empty'), 'images')
    await fs.mkdir(images, { recursive: true })
    await rig.startAgent('empty', {
      apiUrl: rig.slowUrl,
      ...withPeers,
      before: [...onSmallDisk, images],
    })
  },
  { timeout: 600_000 },
)

after(async () => {
  await rig?.[Symbol.asyncDispose]()
  await way?.[Symbol.asyncDispose]()
  await registry?.kill()
})

/** The condition says so, and so does the list. */
async function waitsFor(name: string, what: RegExp): Promise<void> {
  await eventually(async () => {
    const known = await rig.imageReady(name)
    assert.equal(known?.reason, 'Waiting', known?.message)
    assert.match(known.message, what)
  }, 60_000)
  const { stdout, stderr } = await rig.svc3(['vm', 'list'])
  assert.match(stdout + stderr, what)
}

describe('a VM whose image arrives', { timeout: 1_800_000 }, () => {
  it('a VM whose image arrives from a registry that lies, dies and comes back, on a full disk, reads what was pushed', async () => {
    way.bytesPerSecond = 2 * mib
    const one = await rig.deploy('one', { image: reference })
    way.isCorrupting = true
    await waitsFor('one', new RegExp(`waiting: .*127\\.0\\.0\\.1:${way.port}`))
    way.isCorrupting = false
    await eventually(async () => assert.equal((await rig.imageReady('one'))?.reason, 'Arriving'), 60_000)
    await registry.kill()
    await waitsFor('one', /waiting: /)
    const disk = path.join(`/proc/${rig.pidOf('empty')}/root`, rig.dataOf('empty'), 'images')
    const { bavail, bsize } = await fs.statfs(disk)
    execFileSync('fallocate', ['-l', String(bavail * bsize), path.join(disk, 'filler')])
    await registry.start()
    await waitsFor('one', /waiting: .*is full/)
    await fs.rm(path.join(disk, 'filler'))
    way.bytesPerSecond = Infinity
    using guest = await openGuest(one, { user: 'root' })
    assert.equal(await guest.run(readAll, 600_000), rig.sums)
    await eventually(async () => assert.equal((await rig.imageReady('one'))?.status, 'True'), 240_000)
    assert.equal(await guest.run(readAll, 240_000), rig.sums)
  })

  it('a VM whose image arrives from a registry is pushed without waiting for the rest', async () => {
    await rig.empty('empty', withPeers)
    // While it boots, however long that takes here, so much comes besides: most of what no boot reads is still missing
    // then.
    way.bytesPerSecond = (dataMib * mib) / 5 / (rig.bootMs / 1_000)
    const one = await rig.deploy('one', { image: reference })
    using guest = await openGuest(one, { user: 'root' })
    way.bytesPerSecond = mib / 4
    await guest.run('echo changed >/changed; sync')
    const changed = reference.replace('big:1', 'changed:1')
    const pushed = await rig.svc3(['vm', 'push', 'one', changed, '--wait'])
    assert.equal(pushed.code, 0, pushed.stderr)
    assert.equal((await rig.imageReady('one'))?.status, 'False')
    way.bytesPerSecond = Infinity
    await rig.empty('empty', withPeers)
    using other = await openGuest(await rig.deploy('two', { image: changed }), { user: 'root' })
    assert.equal(await other.run(readAll, 240_000), rig.sums)
    assert.equal(await other.run('cat /changed'), 'changed')
  })

  it('a VM whose image arrives reads what was pushed, whoever is killed ten times meanwhile', async () => {
    await rig.empty('empty', withPeers)
    way.bytesPerSecond = 4 * mib
    using guest = await openGuest(await rig.deploy('one', { image: reference }), { user: 'root' })
    const reading = guest.run(readAll, 900_000)
    reading.catch(() => undefined)
    const victims = {
      async agent() {
        await rig.kill('empty')
        await rig.startAgent('empty', withPeers)
      },
      async server() {
        await rig.server.kill('SIGKILL')
        await rig.startServer()
      },
      async registry() {
        await registry.kill()
        await registry.start()
      },
    }
    const names = Object.keys(victims) as (keyof typeof victims)[]
    for (let round = 0; round < 10; round++) {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500))
      await victims[names[round % names.length] ?? 'agent']()
    }
    way.bytesPerSecond = Infinity
    assert.equal(await reading, rig.sums)
    await eventually(async () => assert.equal((await rig.imageReady('one'))?.status, 'True'), 240_000)
    assert.equal(await guest.run(readAll, 240_000), rig.sums)
  })

  it('a VM whose image arrives is saved when its guest waits for a source that is away, and when the agent dies in between', async () => {
    const failpoint = { SVC3_TEST: '1', SVC3_FAILPOINT: 'captures.pack.layer' }
    await rig.empty('empty', { ...withPeers, env: failpoint })
    const { link } = rig
    link.bytesPerSecond = 4 * mib
    using guest = await openGuest(await rig.deploy('one'), { user: 'root' })
    await guest.run('echo changed >/changed; sync')
    link.isCorrupting = true
    const reading = guest.run(readAll, 900_000)
    reading.catch(() => undefined)
    await waitsFor('one', /waiting: the server sent something else/)
    await rig.call('POST', `${vms}/one/save`, { imageName: 'changed' })
    // Longer than the usual wait for QEMU. The guest keeps running.
    await new Promise((resolve) => setTimeout(resolve, 25_000))
    assert.equal((await rig.call('GET', `${namespace}/images/changed`)).state, 'Updating')
    link.isCorrupting = false
    await rig.died('empty')
    link.bytesPerSecond = mib / 8
    await rig.startAgent('empty', withPeers)
    await rig.isReady('changed')
    link.bytesPerSecond = Infinity
    assert.equal(await reading, rig.sums)
    await rig.empty('empty', withPeers)
    using other = await openGuest(await rig.deploy('two', { image: 'changed' }), { user: 'root' })
    assert.equal(await other.run(readAll, 240_000), rig.sums)
    assert.equal(await other.run('cat /changed'), 'changed')
  })

  it('a VM whose image arrives from a peer that lies, and then from one that dies, reads what was saved', async () => {
    await rig.startAgent('maker', withPeers)
    await rig.call('POST', `${namespace}/cache/images/big/add`, { nodes: ['maker'] })
    await eventually(async () => {
      const { nodes } = (await rig.call('GET', `${namespace}/cache/images/big`)) as { nodes: { state: string }[] }
      assert.match(JSON.stringify(nodes), /Ready/i)
    }, 60_000)
    const blobs = path.join(rig.dataOf('maker'), 'images/content/blobs')
    const chunks = (await filesIn(blobs)).map((name) => path.join(blobs, name))
    const flip = async (): Promise<void> => {
      for (const chunk of chunks) {
        await using file = await fs.open(chunk, 'r+')
        const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 0)
        await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, 0)
      }
    }
    await flip()
    await rig.empty('empty', withPeers)
    {
      using guest = await openGuest(await rig.deploy('one'), { user: 'root' })
      assert.equal(await guest.run(readAll, 240_000), rig.sums)
    }
    assert.match(rig.log, /"node":"maker".*no longer used/)
    rig.log = ''
    await flip()
    await rig.kill('maker')
    await rig.startAgent('maker', { ...withPeers, env: { SVC3_TEST: '1', SVC3_FAILPOINT: 'agent.peer.sent' } })
    await rig.empty('empty', withPeers)
    rig.link.bytesPerSecond = 6 * mib
    const two = await rig.deploy('two')
    await rig.died('maker')
    using guest = await openGuest(two, { user: 'root' })
    assert.match(rig.log, /"node":"maker".*no longer used/)
    rig.link.bytesPerSecond = Infinity
    assert.equal(await guest.run(readAll, 240_000), rig.sums)
  })
})
