// Things that UEFI boots, made of the small guest's own boot partition: a disk that tells the kernel another word, and a
// disc whose boot loader greets and waits, because it finds nothing to boot. They stand in for an operator's OpenCore and for an installer's ISO.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'

/** The type of an EFI system partition, as a GPT has it. */
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

/** What the kernel is told has `word` in the place of one of the same length: who booted is seen in the guest. */
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
  // The validation entry, for EFI, adds up to zero in words; the default entry is bootable, and as long as the disc.
  at(catalog).writeUInt16LE(0xef01, 0)
  at(catalog).writeUInt16LE(0x20000 - 0xef01 - 0xaa55, 28)
  at(catalog).writeUInt16LE(0xaa55, 30)
  at(catalog).writeUInt8(0x88, 32)
  at(catalog).writeUInt32LE(image, 40)
  partition.copy(at(image))
  return disc
}
