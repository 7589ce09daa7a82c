// The macOS profile of the QEMU driver boots a real guest: not macOS, which cannot be here, but a small Linux that
// finds itself on that machine, started by a boot disk of the operator's, by UEFI, with an SMC key that shows nowhere.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { recipes } from '../../src/agent/images/recipes.ts'
import type { VmSpec } from '../../src/drivers/driver.ts'
import { connectQmp } from '../../src/drivers/qemu/control/qmp.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { smcFile } from '../../src/drivers/qemu/macos.ts'
import { exec } from '../../src/platform/exec.ts'
import { bootDisk, bootDiskWord } from '../support/guests/efi-disks.ts'
import { openGuest, seedTiny } from '../support/guests/guest.ts'
import { freePort } from '../support/tools/free-port.ts'
import { specify } from './driver-vm.ts'

const smcKey = 'not-an-smc-key-'.repeat(5).slice(0, 64)

describe('macOS profile on a real guest', () => {
  let root: string
  let image: VmSpec['image']
  before(async () => {
    root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-macos-'))
    await seedTiny(root, ['amd64'])
    const tiny = await recipes['tiny-amd64']?.find(root)
    assert.ok(tiny)
    image = { ...tiny, boot: { kind: 'firmware' }, os: 'macos' }
  })
  after(() => fs.rm(root, { recursive: true, force: true }))

  it('a guest with the macOS profile is booted by the boot disk, from firmware with variables of its own, and has the serial number', {
    timeout: 600_000,
  }, async () => {
    const file = path.join(root, 'boot-disk.img')
    const bytes = await bootDisk(image.disk)
    await fs.writeFile(file, bytes)
    const driver = new QemuDriver({ macos: { openCore: { file, format: 'raw' }, smcKey } })
    const [ssh, screen] = [await freePort(), await freePort()]
    const vm = await specify({ architecture: 'amd64', image: async () => image }, root, {
      memoryMiB: 512,
      cpu: 2,
      forwards: [{ protocol: 'tcp', hostPort: ssh, guestPort: 22 }],
      screen: { port: screen, width: 1_280, height: 800 },
      systemSerial: 'C02STANDIN01',
    })
    const folder = path.join(root, 'vm')
    const handle = await driver.create(vm, folder)
    try {
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      const runtime = runtimeFolder(folder)
      assert.equal((await exec('ps', ['-eo', 'args', '-ww'])).stdout.includes(smcKey), false)
      await assert.rejects(fs.access(smcFile(runtime)), { code: 'ENOENT' })
      using guest = await openGuest({ ip: vm.ip, ssh }, {}, 180_000)
      const [commandLine, serial, firmware, disks] = await Promise.all([
        guest.run('cat /proc/cmdline'),
        guest.run('sudo cat /sys/class/dmi/id/product_serial /sys/class/dmi/id/board_serial'),
        guest.run('ls -d /sys/firmware/efi'),
        guest.run('cat /sys/block/vda/ro /sys/block/vdb/ro'),
      ])
      assert.ok(commandLine.includes(` ${bootDiskWord} `), commandLine)
      assert.equal(firmware, '/sys/firmware/efi')
      assert.deepEqual(disks.split('\n'), ['0', '1'])
      assert.deepEqual(serial.split('\n'), ['C02STANDIN01', 'C02STANDIN01'])
      const written = await everythingIn(folder)
      assert.ok(written.length > 0)
      for (const { file, text } of written) assert.ok(!text.includes(smcKey), `${file} holds the SMC key`)
    } finally {
      await driver.destroy(handle)
      await driver.close()
    }
    assert.ok((await fs.readFile(file)).equals(bytes))
  })

  it('the macOS profile gives the SMC to the guest with the key, and does not start where a node has none', async () => {
    const vm = await specify({ architecture: 'amd64', image: async () => image }, root)
    const folder = path.join(root, 'smc')
    const unable = new QemuDriver()
    const handle = await unable.create(vm, folder)
    await assert.rejects(
      unable.start(handle, vm, AbortSignal.timeout(30_000)),
      /cannot run macOS guests: .*agent\.json/,
    )
    const driver = new QemuDriver({ macos: { smcKey } })
    try {
      await driver.start(handle, vm, AbortSignal.timeout(120_000))
      await driver.close()
      const qmp = await connectQmp(path.join(runtimeFolder(folder), 'qmp'), 10_000)
      const key = await qmp.execute('qom-get', { path: '/machine/peripheral/smc', property: 'osk' })
      assert.equal(key, smcKey)
      qmp.close()
    } finally {
      await driver.destroy(handle)
      await driver.close()
    }
  })
})

/** Every small file that svc3 wrote for the VM: records, logs, the console. */
async function everythingIn(folder: string): Promise<{ readonly file: string; readonly text: string }[]> {
  const names = await fs.readdir(folder, { recursive: true, withFileTypes: true })
  const files = names.filter((each) => each.isFile()).map((each) => path.join(each.parentPath, each.name))
  const found: { file: string; text: string }[] = []
  for (const file of files) {
    // Processes that have exited hold nothing open.
    const stat = await fs.stat(file).catch(() => undefined)
    if (!stat || stat.size > 2 ** 20) continue
    found.push({ file, text: await fs.readFile(file, 'latin1').catch(() => '') })
  }
  return found
}
