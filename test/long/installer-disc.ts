// A disc that installs: UEFI boots its GRUB, which boots a Linux that writes a whole system to the empty disk of the machine
// and starts it again. What it installs is the small guest. It stands in for an operating system's installer.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { cpioArchive } from '../../packages/tiny-guests/initrd.ts'
import { diskModules, earlyModules } from '../../packages/tiny-guests/modules.ts'
import { Tree } from '../../packages/tiny-guests/tree.ts'
import { exec } from '../../src/platform/exec.ts'
import { discOf, discSector, efiPartition, fatDisk } from '../support/guests/efi-disks.ts'

const mib = 2 ** 20
export const installed = 'installer: the system is on the disk'

/** Where the system to install lies on the disc, behind everything else. */
const systemMib = 64

/** `tiny`: the folder of the small image for amd64; `folder`: for what is made on the way. */
export async function installerDisc(tiny: string, folder: string): Promise<Buffer> {
  const disk = path.join(tiny, 'disk.raw')
  const runs = await runsOf(disk)
  let next = systemMib
  const steps = runs.map(({ at, count }) => {
    next += count
    return `copy ${next - count} ${at} ${count}`
  })
  const kernel = path.join(folder, 'vmlinuz')
  await exec('debugfs', ['-R', `dump /boot/vmlinuz ${kernel}`, `${disk}?offset=${16 * mib}`])
  const { boot } = JSON.parse(await fs.readFile(path.join(tiny, 'image.json'), 'utf8'))
  const grub = fileIn(await efiPartition(disk), 'BOOTX64 EFI')
  const initrd = await fs.readFile(path.join(tiny, 'initrd.img'))
  const parts = discWith(await fatDisk(new Tree().file('EFI/BOOT/BOOTX64.EFI', grub), 'INSTALL'), {
    config: Buffer.from(config(boot.commandLine)),
    kernel: await fs.readFile(kernel),
    // What comes later in its place counts.
    initrd: Buffer.concat([initrd, cpioArchive(new Tree().script('init', installer(steps.join('\n'))))]),
  })
  assert.ok(parts.length <= systemMib * mib)
  const disc = Buffer.alloc(next * mib)
  parts.copy(disc)
  const handle = await fs.open(disk, 'r')
  await using _ = handle
  let to = systemMib
  for (const { at, count } of runs) {
    await handle.read(disc, to * mib, count * mib, at * mib)
    to += count
  }
  return disc
}

/** Behind the boot image, which the firmware reads, files that GRUB finds by the disc's own file system (ISO 9660). */
function discWith(image: Buffer, files: Readonly<Record<'config' | 'kernel' | 'initrd', Buffer>>): Buffer {
  const boot = discOf(image)
  const sectorsOf = (data: Buffer): number => Math.ceil(data.length / discSector)
  let next = sectorsOf(boot)
  const take = (sectors: number): number => {
    next += sectors
    return next - sectors
  }
  const [root, efi, debian] = [take(1), take(1), take(1)]
  const placed = Object.values(files).map((data) => ({ data, at: take(sectorsOf(data)) }))
  const [settings, kernel, initrd] = placed.map(({ data, at }) => ({ at, bytes: data.length }))
  const disc = Buffer.alloc(next * discSector)
  boot.copy(disc)
  const sector = (number: number): Buffer => disc.subarray(number * discSector)
  const folder = (at: number): Place => ({ at, bytes: discSector, isFolder: true })
  const own = (at: number, above: number): Buffer[] => [entry('\0', folder(at)), entry('\x01', folder(above))]
  const write = (at: number, entries: readonly Buffer[]): number => Buffer.concat(entries).copy(sector(at))
  write(root, [...own(root, root), entry('EFI', folder(efi)), entry('INITRD', initrd), entry('VMLINUZ', kernel)])
  write(efi, [...own(efi, root), entry('DEBIAN', folder(debian))])
  write(debian, [...own(debian, efi), entry('GRUB.CFG', settings)])
  for (const { data, at } of placed) data.copy(sector(at))
  entry('\0', folder(root)).copy(sector(16), 156)
  sector(16).writeUInt16LE(discSector, 128)
  return disc
}

interface Place {
  readonly at: number
  readonly bytes: number
  readonly isFolder?: true
}

/** One of a folder of ISO 9660. */
function entry(name: string, place: Place | undefined): Buffer {
  assert.ok(place)
  const bytes = Buffer.alloc(33 + name.length + ((name.length + 1) % 2))
  bytes.writeUInt8(bytes.length, 0)
  bytes.writeUInt32LE(place.at, 2)
  bytes.writeUInt32BE(place.at, 6)
  bytes.writeUInt32LE(place.bytes, 10)
  bytes.writeUInt32BE(place.bytes, 14)
  bytes.writeUInt8(place.isFolder ? 2 : 0, 25)
  bytes.writeUInt8(name.length, 32)
  bytes.write(name, 33, 'latin1')
  return bytes
}

const config = (commandLine: string): string => `linux /VMLINUZ ${commandLine}
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

/** mcopy writes each file of a new FAT16 in one piece. */
function fileIn(fat: Buffer, name: string): Buffer {
  const entry = fat.subarray(fat.indexOf(name, 0, 'latin1'))
  assert.ok(entry.length > 32 && fat.indexOf(name, 0, 'latin1') > 0, `no ${name} in the boot partition`)
  const [clusterSectors, reserved, rootEntries, fatSectors] = [fat.readUInt8(13), fat.readUInt16LE(14), fat.readUInt16LE(17), fat.readUInt16LE(22)] // biome-ignore format: one look
  const data = (reserved + 2 * fatSectors) * 512 + rootEntries * 32
  const from = data + (entry.readUInt16LE(26) - 2) * clusterSectors * 512
  return fat.subarray(from, from + entry.readUInt32LE(28))
}
