// A guest that tart cannot suspend, on the stand-in for tart: it is shut down for a capture and started again, and what it
// had not written is in the capture. And an image that never ran on a Mac: tart makes the machine for it.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { buildGuest } from '../../packages/tiny-guests/build.ts'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { readMachine, readTartConfig } from '../../src/drivers/apple/machine.ts'
import type { VmSpec } from '../../src/drivers/driver.ts'
import { specify } from '../contract/driver-vm.ts'
import { fileOnDisk } from '../support/guests/disk-files.ts'
import { openGuest, tinyCache } from '../support/guests/guest.ts'
import { installStandIn, standInOptions, tinyBundle, writeMachine } from '../support/stand-ins/tart/install.ts'
import { freePort } from '../support/tools/free-port.ts'

const gib = 2 ** 30
const signal = () => AbortSignal.timeout(120_000)

describe('a Linux guest on Apple silicon (on the stand-in for tart)', { timeout: 600_000 }, () => {
  it('a Linux guest on Apple silicon (on the stand-in for tart) is restarted for a capture, which has all of it', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-linux-'))
    await buildGuest({ name: 'tiny-arm64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
    const tiny = path.join(tinyCache, 'tiny-arm64')
    const machine = await writeMachine(root, await tinyBundle(tiny), 'linux')
    const disk = path.join(tiny, 'disk.raw')
    const image = async (): Promise<VmSpec['image']> => ({
      name: 'tiny',
      digest: 'sha256:tiny',
      disk,
      format: 'raw',
      virtualSizeBytes: gib,
      boot: { kind: 'firmware' },
      machine,
    })
    const driver = new AppleDriver({ ...standInOptions(await installStandIn(path.join(root, 'bin'))), home: root })
    const ssh = await freePort()
    const forwards = [{ protocol: 'tcp', hostPort: ssh, guestPort: 22 }] as const
    const vm = await specify({ architecture: 'arm64', image }, root, { memoryMiB: 256, forwards })
    const handle = await driver.create(vm, path.join(root, 'vm'))
    const boot = 'cat /proc/sys/kernel/random/boot_id'
    try {
      await driver.start(handle, vm, signal())
      await assert.rejects(driver.suspension.suspend(handle), /suspends only macOS/)
      let first = ''
      {
        using guest = await openGuest({ ip: vm.ip, ssh }, { user: 'root' }, 180_000)
        first = await guest.run(boot)
        await guest.run('echo not synced > /root/file')
      }
      const { layers } = await driver.capturing.capture(handle, vm, { id: 'one', withMemory: false }, signal())
      assert.equal((await driver.inspect(handle)).state, 'running')
      using again = await openGuest({ ip: vm.ip, ssh }, { user: 'root' }, 180_000)
      assert.notEqual(await again.run(boot), first, 'it has booted')
      const node = { driver: 'raw', file: { driver: 'file', filename: layers[0]?.file } }
      await fs.copyFile(disk, path.join(root, 'image.raw'))
      assert.equal(await fileOnDisk(node, path.join(root, 'image.raw'), '/root/file'), 'not synced\n')
      // Its ports are the same, and it can be told to shut down.
      await driver.stop(handle, { graceSeconds: 120 })
      assert.equal((await driver.inspect(handle)).state, 'stopped')
    } finally {
      await driver.destroy(handle)
      await driver.close()
      await fs.rm(root, { recursive: true })
    }
  })

  it('a Linux guest on Apple silicon (on the stand-in for tart) boots by UEFI from an image that never ran on a Mac, and images that cannot boot are refused', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-uefi-'))
    await buildGuest({ name: 'tiny-arm64', folder: tinyCache, signal: AbortSignal.timeout(170_000) })
    const plain: VmSpec['image'] = {
      name: 'tiny',
      digest: 'sha256:tiny',
      disk: path.join(tinyCache, 'tiny-arm64', 'disk.raw'),
      format: 'raw',
      virtualSizeBytes: gib,
      boot: { kind: 'firmware' },
    }
    const driver = new AppleDriver({ ...standInOptions(await installStandIn(path.join(root, 'bin'))), home: root })
    const ssh = await freePort()
    const forwards = [{ protocol: 'tcp', hostPort: ssh, guestPort: 22 }] as const
    const change = { memoryMiB: 512, cpu: 2, forwards }
    const vm = await specify({ architecture: 'arm64', image: async () => plain }, root, change)
    const boot = { kind: 'kernel', kernel: '/nowhere', commandLine: '' } as const
    const folder = path.join(root, 'vm')
    await assert.rejects(driver.create({ ...vm, image: { ...plain, boot } }, folder), /tart boots disks only/)
    await assert.rejects(driver.create({ ...vm, architecture: 'amd64' }, folder), /arm64 VMs only/)
    await assert.rejects(
      driver.create({ ...vm, image: { ...plain, machine: { config: 'x' } } }, folder),
      /has no NVRAM/,
    )
    const handle = await driver.create(vm, folder)
    try {
      await driver.start(handle, vm, signal())
      using guest = await openGuest({ ip: vm.ip, ssh }, { user: 'root' }, 300_000)
      const { macAddress } = await readTartConfig(folder, { name: (await readMachine(folder))?.name ?? '' })
      assert.equal(await guest.run('cat /sys/class/net/eth0/address'), macAddress)
      assert.equal(await guest.run('nproc'), '2')
    } finally {
      await driver.destroy(handle)
      await driver.close()
      await fs.rm(root, { recursive: true })
    }
  })
})
