// The partition table is what firmware and kernels check: sums, places and the order of bytes.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { crc32 } from 'node:zlib'
import { guidBytes, partitionTable, partitionTypes, sectorBytes } from './gpt.ts'

const diskBytes = 64 * 1024 * 1024
const lastSector = diskBytes / sectorBytes - 1
const id = '00112233-4455-6677-8899-AABBCCDDEEFF'

function written(): Buffer {
  const disk = Buffer.alloc(diskBytes)
  const root = { number: 2, type: partitionTypes.linux, id, name: 'root', firstSector: 2048, lastSector: 4095 } as const
  for (const { offsetBytes, data } of partitionTable(diskBytes, id, [root])) data.copy(disk, offsetBytes)
  return disk
}

describe('partitionTable', () => {
  const disk = written()

  it('partitionTable writes GUIDs with their first three parts turned', () =>
    assert.equal(guidBytes(id).toString('hex'), '33221100554477668899aabbccddeeff'))

  it('partitionTable has a header at either end that sums up and points at the other', () => {
    for (const [own, other, table] of [
      [1, lastSector, 2],
      [lastSector, 1, lastSector - 32],
    ] as const) {
      const header = Buffer.from(disk.subarray(own * sectorBytes, own * sectorBytes + 92))
      const sum = header.readUInt32LE(16)
      header.writeUInt32LE(0, 16)
      assert.equal(sum, crc32(header))
      assert.equal(header.toString('latin1', 0, 8), 'EFI PART')
      const places = [24, 32, 40, 48, 72].map((at) => Number(header.readBigUInt64LE(at)))
      assert.deepEqual(places, [own, other, 34, lastSector - 33, table])
      const entries = disk.subarray(table * sectorBytes, table * sectorBytes + 128 * 128)
      assert.equal(header.readUInt32LE(88), crc32(entries))
      const entry = entries.subarray(128, 256)
      assert.equal(entry.readBigUInt64LE(32), 2048n)
      assert.equal(entry.readBigUInt64LE(40), 4095n)
      assert.equal(entry.toString('utf16le', 56, 64), 'root')
    }
  })

  it('partitionTable tells old programs that the disk is taken', () => {
    assert.equal(disk.readUInt16LE(510), 0xaa55)
    assert.equal(disk[446 + 4], 0xee)
    assert.equal(disk.readUInt32LE(446 + 8), 1)
    assert.equal(disk.readUInt32LE(446 + 12), lastSector)
    assert.ok(disk.subarray(0, 440).every((byte) => byte === 0))
  })
})
