// Boot paths of real small disks, made here: tables as sgdisk and fdisk write them, and damaged ones.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { readBootPath } from './boot-path.ts'

const mebibyte = 2 ** 20
let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-boot-path-'))
})
after(() => fs.rm(folder, { recursive: true }))

async function diskOf(parts: readonly (readonly [offset: number, data: Buffer])[], bytes = 4 * mebibyte) {
  const file = path.join(folder, 'disk')
  await fs.writeFile(file, '')
  await using handle = await fs.open(file, 'r+')
  await handle.truncate(bytes)
  for (const [offset, data] of parts) await handle.write(data, 0, data.length, offset)
  return readBootPath(file)
}

const sectorBytes = 512
const types = {
  linux: '0FC63DAF-8483-4772-8E79-3D69D8477DE4',
  efi: 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B',
  apfs: '7C3457EF-0000-11AA-AA11-00306543ECAC',
}

/** The bytes of a GUID on disk: its first three parts are little-endian. */
function guid(text: string): Buffer {
  const parts = text.split('-').map((part) => Buffer.from(part, 'hex'))
  return Buffer.concat(parts.map((part, index) => (index < 3 ? part.reverse() : part)))
}

/** A header and its table of 128 entries, as every tool writes them. */
function gpt(...found: string[]): (readonly [number, Buffer])[] {
  return gptOf(sectorBytes, found)
}

function gptOf(sector: number, found: readonly string[]): (readonly [number, Buffer])[] {
  const header = Buffer.alloc(sectorBytes)
  header.write('EFI PART', 0, 'latin1')
  header.writeBigUInt64LE(2n, 72)
  header.writeUInt32LE(128, 80)
  header.writeUInt32LE(128, 84)
  const table = Buffer.alloc(128 * 128)
  for (const [index, type] of found.entries()) guid(type).copy(table, 128 * index)
  return [...mbr([0xee]), [sector, header], [2 * sector, table]]
}

/** As fdisk writes it: four entries and the signature. */
function mbr(types: readonly number[], code = ''): (readonly [number, Buffer])[] {
  const sector = Buffer.alloc(sectorBytes)
  sector.write(code, 0, 'latin1')
  for (const [index, type] of types.entries()) sector[446 + 16 * index + 4] = type
  sector.writeUInt16LE(0xaa55, 510)
  return [[0, sector]]
}

describe('boot path', () => {
  it('boot path: a table for sectors of 4096 bytes is read like any other', async () => {
    assert.deepEqual(await diskOf(gptOf(4096, [types.efi, types.apfs])), { efi: true, bios: false, apple: true })
  })

  it('an EFI system partition in a GPT is found at any position', async () => {
    assert.deepEqual(await diskOf(gpt(types.linux, types.efi)), {
      efi: true,
      bios: false,
      apple: false,
    })
    assert.deepEqual(await diskOf(gpt(types.linux)), { efi: false, bios: false, apple: false })
  })

  it('an Apple container is found in a GPT, and without a table', async () => {
    assert.equal((await diskOf(gpt(types.apfs))).apple, true)
    assert.equal((await diskOf([[32, Buffer.from('NXSB')]])).apple, true)
  })

  it('boot code and the types of an MBR are found', async () => {
    assert.deepEqual(await diskOf(mbr([0x83], 'code')), { efi: false, bios: true, apple: false })
    assert.deepEqual(await diskOf(mbr([0x83, 0xef])), { efi: true, bios: false, apple: false })
    assert.deepEqual(await diskOf(mbr([0x83])), { efi: false, bios: false, apple: false })
  })

  it('an empty or tiny disk boots nothing', async () => {
    assert.deepEqual(await diskOf([]), { efi: false, bios: false, apple: false })
    assert.deepEqual(await diskOf([], 100), { efi: false, bios: false, apple: false })
  })

  it('a table that declares too much, or lies outside of the disk, does no harm', async () => {
    const header = Buffer.alloc(sectorBytes)
    await fc.assert(
      fc.asyncProperty(
        fc.bigInt(0n, 2n ** 64n - 1n),
        fc.nat(0xffff_ffff),
        fc.nat(0xffff_ffff),
        async (at, count, size) => {
          header.write('EFI PART', 0, 'latin1')
          header.writeBigUInt64LE(at, 72)
          header.writeUInt32LE(count, 80)
          header.writeUInt32LE(size, 84)
          assert.equal((await diskOf([[sectorBytes, header]])).efi, false)
        },
      ),
      { numRuns: 50 },
    )
  })
})
