// A Mac with tart's guest agent, on the stand-in for tart: what it had not written is in a capture; and told to stop, it shuts
// down from inside, because at its power button it would only ask who sits there.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { readMachine } from '../../src/drivers/apple/machine.ts'
import { tartFolder } from '../../src/drivers/apple/tart.ts'
import type { VmSpec } from '../../src/drivers/driver.ts'
import { specify } from '../contract/driver-vm.ts'
import { fileOnDisk } from '../support/guests/disk-files.ts'
import { openGuest, tinyCache } from '../support/guests/guest.ts'
import { installStandIn, standInOptions, tinyBundle, writeMachine } from '../support/stand-ins/tart/install.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'

describe('a Mac with a guest agent (on the stand-in for tart)', { timeout: 240_000 }, () => {
  it('a Mac with a guest agent (on the stand-in for tart) is captured with what it had not written, shuts down from inside, and has all of it afterwards', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-stop-'))
    await buildGuest({ name: 'tiny-arm64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
    const tiny = path.join(tinyCache, 'tiny-arm64')
    const machine = await writeMachine(root, await tinyBundle(tiny))
    const image = async (): Promise<VmSpec['image']> => ({
      name: 'tiny',
      digest: 'sha256:tiny',
      disk: path.join(tiny, 'disk.raw'),
      format: 'raw',
      virtualSizeBytes: 2 ** 30,
      boot: { kind: 'firmware' },
      machine,
    })
    const driver = new AppleDriver({ ...standInOptions(await installStandIn(path.join(root, 'bin'))), home: root })
    const ssh = await freePort()
    const forwards = [{ protocol: 'tcp', hostPort: ssh, guestPort: 22 }] as const
    const vm = await specify({ architecture: 'arm64', image }, root, { memoryMiB: 256, forwards, systemSerial: 'NEW' })
    const handle = await driver.create(vm, path.join(root, 'vm'))
    try {
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      {
        using guest = await openGuest({ ip: vm.ip, ssh }, { user: 'root' }, 180_000)
        await guest.run('echo not synced > /root/file')
      }
      const place = tartFolder(handle.folder, (await readMachine(handle.folder))?.name ?? '')
      await eventually(() => fs.access(path.join(place, 'stand-in.guest-agent')), 120_000)
      const signal = AbortSignal.timeout(120_000)
      const { layers } = await driver.capturing.capture(handle, vm, { id: 'one', withMemory: false }, signal)
      const node = { driver: 'raw', file: { driver: 'file', filename: layers[0]?.file } }
      await fs.copyFile(vm.image.disk, path.join(root, 'image.raw'))
      assert.equal(await fileOnDisk(node, path.join(root, 'image.raw'), '/root/file'), 'not synced\n')
      await driver.stop(handle, { graceSeconds: 300 })
      // Had it not shut down by itself, the grace would be longer than this test.
      assert.equal((await driver.inspect(handle)).state, 'stopped')
      const config = async (file: string) => JSON.parse(await fs.readFile(file, 'utf8')).ecid
      assert.notEqual(await config(path.join(place, 'config.json')), await config(machine.config), 'its serial number')
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      using again = await openGuest({ ip: vm.ip, ssh }, { user: 'root' }, 180_000)
      assert.equal(await again.run('cat /root/file'), 'not synced')
    } finally {
      await driver.destroy(handle)
      await driver.close()
      await fs.rm(root, { recursive: true })
    }
  })
})
