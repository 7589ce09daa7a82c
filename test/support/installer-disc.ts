// A disc that installs: UEFI boots its GRUB, which boots a Linux that writes a whole system to the empty disk of the machine
// and starts it again. What it installs is the small guest. It stands in for an operating system's installer.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { fatFileSystem } from '../../src/images/tiny/fat.ts'
import { cpioArchive } from '../../src/images/tiny/initrd.ts'
import { diskModules, earlyModules } from '../../src/images/tiny/modules.ts'
import { Tree } from '../../src/images/tiny/tree.ts'
import { exec } from '../../src/platform/exec.ts'
import { discOf, efiPartition } from './efi-disks.ts'

const mib = 2 ** 20
export const installed = 'installer: the system is on the disk'

/** `tiny`: the folder of the small image for amd64; `folder`: for what is made on the way. */
export async function installerDisc(tiny: string, folder: string): Promise<Buffer> {
  const disk = path.join(tiny, 'disk.raw')
  const runs = await runsOf(disk)
  const { boot } = JSON.parse(await fs.readFile(path.join(tiny, 'image.json'), 'utf8'))
  const kernel = path.join(folder, 'vmlinuz')
  await exec('debugfs', ['-R', `dump /boot/vmlinuz ${kernel}`, `${disk}?offset=${16 * mib}`])
  const partition = (steps: string): Buffer => {
    const init = new Tree().script('init', installer(steps))
    const tree = new Tree()
      .file('EFI/BOOT/BOOTX64.EFI', grub)
      .file('VMLINUZ', vmlinuz)
      // What comes later in its place counts.
      .file('INITRD', Buffer.concat([initrd, cpioArchive(init)]))
      .file('EFI/DEBIAN/GRUB.CFG', config(boot.commandLine))
    return fatFileSystem(tree, 48 * mib, 'INSTALL')
  }
  const [grub, vmlinuz, initrd] = [
    fileIn(await efiPartition(disk), 'BOOTX64 EFI'),
    await fs.readFile(kernel),
    await fs.readFile(path.join(tiny, 'initrd.img')),
  ]
  // The system lies behind the boot image, at whole MiB. How long that is does not depend on the steps.
  const start = Math.ceil(discOf(partition('')).length / mib)
  let next = start
  const steps = runs.map(({ at, count }) => {
    const step = `copy ${next} ${at} ${count}`
    next += count
    return step
  })
  const disc = Buffer.alloc(next * mib)
  discOf(partition(steps.join('\n'))).copy(disc)
  const handle = await fs.open(disk, 'r')
  await using _ = handle
  let to = start
  for (const { at, count } of runs) {
    await handle.read(disc, to * mib, count * mib, at * mib)
    to += count
  }
  return disc
}

const config = (commandLine: string): string => `search --no-floppy --set=root --file /VMLINUZ
linux /VMLINUZ ${commandLine}
initrd /INITRD
boot
`

const installer = (steps: string): string => `#!/bin/busybox sh
B=/bin/busybox
$B mount -t devtmpfs dev /dev; $B mount -t proc proc /proc; $B mount -t sysfs sys /sys
$B modprobe -qa ${[...earlyModules, ...diskModules].join(' ')}
until [ -b /dev/sr0 ] && [ -b /dev/vda ]; do $B usleep 100000; done
copy() { $B dd if=/dev/sr0 of=/dev/vda bs=1048576 skip=$1 seek=$2 count=$3 conv=notrunc 2> /dev/null; }
${steps}
$B sync
echo "${installed}"
$B sleep 1
$B reboot -f
`

/** Where it is not all zeros, in MiB. */
async function runsOf(disk: string): Promise<readonly { readonly at: number; readonly count: number }[]> {
  const handle = await fs.open(disk, 'r')
  await using _ = handle
  const block = Buffer.alloc(mib)
  const zeros = Buffer.alloc(mib)
  const runs: { at: number; count: number }[] = []
  const { size } = await handle.stat()
  for (let at = 0; at < size / mib; at++) {
    await handle.read(block, 0, mib, at * mib)
    if (block.equals(zeros)) continue
    const last = runs.at(-1)
    if (last && last.at + last.count === at) last.count++
    else runs.push({ at, count: 1 })
  }
  return runs
}

/** Our FAT16 has each file in one piece. */
function fileIn(fat: Buffer, name: string): Buffer {
  const entry = fat.subarray(fat.indexOf(name, 0, 'latin1'))
  assert.ok(entry.length > 32 && fat.indexOf(name, 0, 'latin1') > 0, `no ${name} in the boot partition`)
  const [clusterSectors, reserved, rootEntries, fatSectors] = [fat.readUInt8(13), fat.readUInt16LE(14), fat.readUInt16LE(17), fat.readUInt16LE(22)] // biome-ignore format: one look
  const data = (reserved + 2 * fatSectors) * 512 + rootEntries * 32
  const from = data + (entry.readUInt16LE(26) - 2) * clusterSectors * 512
  return fat.subarray(from, from + entry.readUInt32LE(28))
}
