// The file system reads back as firmware would read it: by boot sector, tables and chains.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fatFileSystem } from './fat.ts'
import { Tree } from './tree.ts'

const sizeBytes = 15 * 1024 * 1024
const big = Buffer.alloc(100_001, 'grub')

/** All files, by path. Fails where the two tables differ or a chain is longer than its file. */
function readAll(disk: Buffer): Map<string, Buffer> {
  const fatBytes = disk.readUInt16LE(22) * 512
  const clusterBytes = disk.readUInt8(13) * 512
  const tables = [512, 512 + fatBytes].map((start) => disk.subarray(start, start + fatBytes))
  const [fat = disk, copy = disk] = tables
  assert.ok(fat.equals(copy))
  const rootStart = 512 + 2 * fatBytes
  const dataStart = rootStart + disk.readUInt16LE(17) * 32
  const chain = (first: number): Buffer => {
    const parts: Buffer[] = []
    for (let at = first; at !== 0xffff; at = fat.readUInt16LE(at * 2)) {
      assert.ok(at >= 2 && parts.length < 10_000)
      parts.push(disk.subarray(dataStart + (at - 2) * clusterBytes, dataStart + (at - 1) * clusterBytes))
    }
    return Buffer.concat(parts)
  }
  const files = new Map<string, Buffer>()
  const walk = (entries: Buffer, above: string): void => {
    for (let at = 0; entries[at] !== 0; at += 32) {
      const [base, extension] = [entries.toString('latin1', at, at + 8), entries.toString('latin1', at + 8, at + 11)]
      const [attributes, first] = [entries.readUInt8(at + 11), entries.readUInt16LE(at + 26)]
      if (attributes === 0x08 || base.startsWith('.')) continue
      const path = above + base.trim() + (extension.trim() === '' ? '' : `.${extension.trim()}`)
      const size = entries.readUInt32LE(at + 28)
      if (attributes === 0x10) walk(chain(first), `${path}/`)
      else files.set(path, first === 0 ? Buffer.alloc(0) : chain(first).subarray(0, size))
    }
  }
  walk(disk.subarray(rootStart, dataStart), '')
  return files
}

describe('fatFileSystem', () => {
  it('fatFileSystem has every file where it belongs', () => {
    const tree = new Tree().file('EFI/BOOT/BOOTX64.EFI', big).file('EFI/DEBIAN/GRUB.CFG', 'boot\n').file('EMPTY', '')
    const disk = fatFileSystem(tree, sizeBytes, 'LABEL')
    assert.equal(disk.length, sizeBytes)
    assert.equal(disk.readUInt16LE(510), 0xaa55)
    const files = readAll(disk)
    assert.deepEqual([...files.keys()], ['EFI/BOOT/BOOTX64.EFI', 'EFI/DEBIAN/GRUB.CFG', 'EMPTY'])
    assert.ok(files.get('EFI/BOOT/BOOTX64.EFI')?.equals(big))
    assert.equal(files.get('EFI/DEBIAN/GRUB.CFG')?.toString(), 'boot\n')
  })

  it('fatFileSystem refuses what does not fit', () => {
    const make = (name: string, data: Buffer, bytes = sizeBytes): Buffer =>
      fatFileSystem(new Tree().file(name, data), bytes, 'X')
    assert.throws(() => make('BIG', Buffer.alloc(sizeBytes)), /do not fit/)
    assert.throws(() => make('lower.cfg', big), /no name for FAT16/)
    assert.throws(() => make('BIG', big, 1024 * 1024), /no size for FAT16/)
  })
})
