// The QEMU driver keeps the contract, with real processes on blank disks.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { testedArchitectures } from '../support/guests/guest.ts'
import { eventually } from '../support/tools/eventually.ts'
import { driverContract } from './driver.ts'
import { blankImage, killQemu, processesOf, qemusOf, tracesOf } from './driver-blank-vm.ts'

for (const architecture of testedArchitectures)
  driverContract(`qemu, ${architecture}`, {
    open: () => new QemuDriver(),
    architecture,
    image: (folder, digest) => blankImage(architecture, folder, digest),
    isDeaf: true,
    crash: async (_, handle) => {
      await killQemu(handle)
      return /QEMU was killed by signal 9 \(SIGKILL\)/
    },
    reboot: async (_, handle) => {
      await killQemu(handle)
      await eventually(async () => assert.deepEqual(await processesOf(handle), []))
      const file = path.join(handle.folder, 'qemu.json')
      const { problem: _problem, ...run } = JSON.parse(await fs.readFile(file, 'utf8'))
      await fs.writeFile(file, JSON.stringify({ ...run, bootId: 'an earlier boot' }))
    },
    processes: async (handle) => (await qemusOf(handle)).length,
    traces: tracesOf,
  })
