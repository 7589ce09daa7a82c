// A VM on an image that is still on its way, with real QEMU: it reads what has come, waits for what has not, outlives the one
// who serves it, is captured, and moves to the file while it runs.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import type { BaseImage, Handle } from '../../src/drivers/driver.ts'
import { connectQmp } from '../../src/drivers/qemu/control/qmp.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { qmpSocket } from '../../src/drivers/qemu/control/sockets.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { serveDisk } from '../../src/images/nbd/server.ts'
import { blankImage, qemusOf, tracesOf } from './driver-blank-vm.ts'
import { captureNode, lettersOf, requireOnDisk, writeDisk } from './driver-disk.ts'
import { specify } from './driver-vm.ts'

const mib = 2 ** 20
const signal = () => AbortSignal.timeout(60_000)

async function arrange(t: { after(work: () => Promise<void>): void }) {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-arriving-'))
  const driver = new QemuDriver({ network: 'user' })
  const image = (folder: string, digest: string) => blankImage('amd64', folder, digest)
  const vm = await specify({ architecture: 'amd64', image }, root, { forwards: [] })
  // One letter a MiB, and nothing of it at its place yet.
  const bytes = Buffer.alloc(64 * mib)
  for (const at of 'abcdefgh'.split('').keys()) bytes.fill(97 + at, at * mib, (at + 1) * mib)
  await fs.rm(vm.image.disk)
  const socket = path.join(root, 's', 'disk')
  const arriving: BaseImage = { ...vm.image, socket }
  const reads: number[] = []
  const server = {
    /** Until it is opened, reads of it wait. */
    gate: Promise.resolve(),
    now: undefined as Awaited<ReturnType<typeof serveDisk>> | undefined,
    async start() {
      this.now = await serveDisk(socket, {
        bytes: bytes.length,
        read: async (target, offset) => {
          await this.gate
          reads.push(offset)
          bytes.copy(target, 0, offset)
        },
      })
    },
  }
  await server.start()
  const handle = await driver.create({ ...vm, image: arriving }, path.join(root, 'vm'))
  t.after(async () => {
    await driver.destroy(handle)
    await driver.close()
    await server.now?.stop()
    assert.deepEqual(await tracesOf(handle), [])
    await fs.rm(root, { recursive: true })
  })
  return {
    root,
    driver,
    handle,
    server,
    reads,
    vm: { ...vm, image: arriving },
    /** The file is there. */
    land: () => fs.writeFile(vm.image.disk, bytes),
    whole: vm.image,
  }
}

/** What QEMU reads from. */
async function driversOf({ folder }: Handle): Promise<readonly string[]> {
  const qmp = await connectQmp(qmpSocket(runtimeFolder(folder)), 10_000)
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { drv: string }[]
  qmp.close()
  await qmp.closed
  return nodes.map(({ drv }) => drv)
}

describe('QEMU on an image that is on its way', () => {
  it('QEMU reads what has come, waits while nobody serves it, and goes on', { timeout: 120_000 }, async (t) => {
    const { driver, handle, vm, server, reads } = await arrange(t)
    await driver.start(handle, vm, signal())
    await driver.close()
    await requireOnDisk(handle, 'c', 2)
    assert.ok(reads.some((offset) => Math.floor(offset / mib) === 2))
    await server.now?.stop()
    const read = requireOnDisk(handle, 'd', 3)
    const early = await Promise.race([read.then(() => 'answered'), new Promise((r) => setTimeout(r, 1_500, 'waits'))])
    assert.equal(early, 'waits')
    await server.start()
    await read
    await requireOnDisk(handle, 'a', 0)
  })

  it('QEMU moves to the file while it runs, after captures too, and every byte is right', {
    timeout: 120_000,
  }, async (t) => {
    const { root, driver, handle, vm, server, land, whole } = await arrange(t)
    await driver.start(handle, vm, signal())
    const qemus = await qemusOf(handle)
    await driver.close()
    await writeDisk(handle, 'X', 1)
    await driver.capturing.capture(handle, vm, { id: 'one', withMemory: false }, signal())
    await driver.close()
    await writeDisk(handle, 'Y', 4)
    await requireOnDisk(handle, 'f', 5)
    await land()
    await driver.arriving.arrived(handle, whole)
    await driver.arriving.arrived(handle, whole)
    await driver.close()
    assert.ok(!(await driversOf(handle)).includes('nbd'))
    assert.equal(server.now?.readers, 0)
    await server.now?.stop()
    for (const [at, letter] of [...'aXcdYfgh'].entries()) await requireOnDisk(handle, letter, at)
    assert.deepEqual(await qemusOf(handle), qemus)
    const [one] = await driver.capturing.list(handle)
    assert.equal(one && (await lettersOf(captureNode(one, whole), root)), 'aXcdefgh')
    await driver.stop(handle, { graceSeconds: 0 })
    await driver.start(handle, { ...vm, image: whole }, signal())
    await driver.close()
    for (const [at, letter] of [...'aXcdYfgh'].entries()) await requireOnDisk(handle, letter, at)
  })

  it('QEMU started on several layers moves to the file as well, from a read that waits', {
    timeout: 120_000,
  }, async (t) => {
    const { driver, handle, vm, server, land, whole } = await arrange(t)
    await driver.start(handle, vm, signal())
    for (const [at, id] of ['one', 'two'].entries()) {
      await driver.close()
      await writeDisk(handle, 'X', at)
      await driver.capturing.capture(handle, vm, { id, withMemory: false }, signal())
    }
    await driver.stop(handle, { graceSeconds: 0 })
    await driver.start(handle, vm, signal())
    await land()
    const gate = Promise.withResolvers<void>()
    server.gate = gate.promise
    await driver.close()
    const read = requireOnDisk(handle, 'e', 4)
    setTimeout(gate.resolve, 500)
    await read
    await driver.arriving.arrived(handle, whole)
    await driver.close()
    assert.ok(!(await driversOf(handle)).includes('nbd'))
    await server.now?.stop()
    for (const [at, letter] of [...'XXcdefgh'].entries()) await requireOnDisk(handle, letter, at)
  })

  it('a QEMU VM whose read waits for nobody is destroyed all the same', { timeout: 120_000 }, async (t) => {
    const { driver, handle, vm, server } = await arrange(t)
    const gate = Promise.withResolvers<void>()
    await driver.start(handle, vm, signal())
    server.gate = gate.promise
    await driver.close()
    const read = requireOnDisk(handle, 'h', 7).catch(() => undefined)
    await driver.destroy(handle)
    await read
    gate.resolve()
    assert.deepEqual(await qemusOf(handle), [])
    assert.throws(() => readFileSync(path.join(handle.folder, 'chain.json')))
  })
})
