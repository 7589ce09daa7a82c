// Disks and discs for UEFI. From the small guest's boot partition: a disk with another kernel parameter, in place of an
// operator's OpenCore, and a disc whose boot loader greets and waits, in place of an installer's ISO. For arm64: a disk
// with a program that only writes to the serial console and boots long before Linux.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { writeFat } from '../../../packages/tiny-guests/fat.ts'
import { Tree } from '../../../packages/tiny-guests/tree.ts'

/** The GPT type of an EFI system partition. */
const efiSystem = Buffer.from('28732ac11ff8d211ba4b00a0c93ec93b', 'hex')
const sector = 512
export const discSector = 2_048

export async function efiPartition(disk: string): Promise<Buffer> {
  const handle = await fs.open(disk, 'r')
  await using _ = handle
  const table = Buffer.alloc(128 * 128)
  await handle.read(table, 0, table.length, 2 * sector)
  const entry = table.subarray(table.indexOf(efiSystem))
  const [first, last] = [Number(entry.readBigUInt64LE(32)), Number(entry.readBigUInt64LE(40))]
  const partition = Buffer.alloc((last - first + 1) * sector)
  await handle.read(partition, 0, partition.length, first * sector)
  return partition
}

/** Replaces a kernel parameter of the same length, so that the guest shows which disk booted it. */
export const bootDiskWord = 'byopencore'
export async function bootDisk(disk: string): Promise<Buffer> {
  const partition = await efiPartition(disk)
  const at = partition.indexOf(' nowatchdog ', partition.indexOf('linux /boot/vmlinuz '))
  assert.ok(at > 0, 'the kernel is told nothing that could be replaced')
  partition.write(` ${bootDiskWord} `, at)
  return partition
}

/** El Torito for UEFI: the boot image is the partition. */
export const discGreeting = /"UEFI QEMU DVD-ROM[^"]*"[\s\S]*Welcome to GRUB!/
export const efiDisc = async (disk: string): Promise<Buffer> => discOf(await efiPartition(disk))

export function discOf(partition: Buffer): Buffer {
  const [bootRecord, end, catalog, image] = [17, 18, 19, 20]
  const sectors = image + Math.ceil(partition.length / discSector)
  const disc = Buffer.alloc(sectors * discSector)
  const at = (number: number): Buffer => disc.subarray(number * discSector)
  at(16).write('\x01CD001\x01', 'latin1')
  at(16).writeUInt32LE(sectors, 80)
  at(bootRecord).write('\x00CD001\x01EL TORITO SPECIFICATION', 'latin1')
  at(bootRecord).writeUInt32LE(catalog, 0x47)
  at(end).write('\xffCD001\x01', 'latin1')
  // The validation entry, for EFI, sums to zero; the default entry is bootable and as long as the disc.
  at(catalog).writeUInt16LE(0xef01, 0)
  at(catalog).writeUInt16LE(0x20000 - 0xef01 - 0xaa55, 28)
  at(catalog).writeUInt16LE(0xaa55, 30)
  at(catalog).writeUInt8(0x88, 32)
  at(catalog).writeUInt32LE(image, 40)
  partition.copy(at(image))
  return disc
}

const programAt = 0x1000

export const speakingDisk = (text: string): Promise<Buffer> =>
  fatDisk(new Tree().file('EFI/BOOT/BOOTAA64.EFI', efiProgram(text)), 'SPEAKING')

/** A FAT file system of 16 MiB. */
export async function fatDisk(tree: Tree, label: string): Promise<Buffer> {
  await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), 'svc3-fat-'))
  const file = path.join(folder.path, 'disk')
  const sizeBytes = 16 * 2 ** 20
  await fs.writeFile(file, '')
  await fs.truncate(file, sizeBytes)
  const signal = AbortSignal.timeout(60_000)
  await writeFat(file, tree, { offsetBytes: 0, sizeBytes, label, time: '1700000000', signal })
  return fs.readFile(file)
}

/** arm64 instructions in a PE32+ file, as UEFI loads it: headers, and one section at `programAt`. */
function efiProgram(text: string): Buffer {
  const program = Buffer.alloc(2 * programAt)
  program.write('MZ', 'latin1')
  program.writeUInt32LE(0x40, 0x3c)
  program.write('PE\0\0', 0x40, 'latin1')
  const [file, optional, section] = [0x44, 0x58, 0x58 + 0xf0]
  program.writeUInt16LE(0xaa64, file) // arm64
  program.writeUInt16LE(1, file + 2) // section
  program.writeUInt16LE(0xf0, file + 16) // bytes of the optional header
  program.writeUInt16LE(0x2022, file + 18) // can be run, at any address
  program.writeUInt16LE(0x20b, optional)
  program.writeUInt32LE(programAt, optional + 4) // bytes of code
  program.writeUInt32LE(programAt, optional + 16) // where it begins to run
  program.writeUInt32LE(programAt, optional + 20)
  program.writeUInt32LE(programAt, optional + 32) // how sections lie in memory
  program.writeUInt32LE(programAt, optional + 36) // and in the file
  program.writeUInt32LE(2 * programAt, optional + 56) // bytes of all
  program.writeUInt32LE(programAt, optional + 60) // bytes of the headers
  program.writeUInt16LE(10, optional + 68) // an application for UEFI
  program.writeUInt32LE(16, optional + 108) // entries of the directory that follows, all empty
  program.write('.text', section, 'latin1')
  for (const offset of [8, 12, 16, 20]) program.writeUInt32LE(programAt, section + offset)
  program.writeUInt32LE(0x60000020, section + 36) // code, read and run
  const words = [
    0x10000101, //       adr x1, text
    0xd2a12002, //       mov x2, 0x09000000, the serial port
    0x38401423, // loop: ldrb w3, [x1], 1
    0x34000063, //       cbz w3, done
    0xb9000043, //       str w3, [x2]
    0x17fffffd, //       b loop
    0xd503207f, // done: wfi
    0x17ffffff, //       b done
  ] // biome-ignore format: one instruction a line
  for (const [index, word] of words.entries()) program.writeUInt32LE(word, programAt + index * 4)
  program.write(`${text}\r\n`, programAt + words.length * 4, 'latin1')
  return program
}
