// Which files are discs, by the bytes that say what they are.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { bootDisc } from '../../test/support/guests/boot-disc.ts'
import { randomDisc } from '../../test/support/tools/disc.ts'
import { checkDisc } from './disc.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-disc-'))
})
after(() => fs.rm(folder, { recursive: true }))

const check = async (bytes: Buffer): Promise<void> => {
  const file = path.join(folder, 'file')
  await fs.writeFile(file, bytes)
  await checkDisc(file)
}
const signed = (text: string, at: number): Buffer => {
  const bytes = Buffer.alloc(40_000)
  bytes.write(text, at, 'latin1')
  return bytes
}

describe('a disc', () => {
  const discs: Readonly<Record<string, Buffer>> = {
    'of ISO 9660': randomDisc(40_000),
    'that boots': bootDisc('hello'),
    'of UDF': signed('\0BEA01\x01', 0x8000),
    'of Apple, as hdiutil converts an installer': signed('ER\x02\0', 0),
    'of HFS+ without partitions': signed('H+\0\x04', 1_024),
    'with a GUID partition table': signed('EFI PART', 512),
  }
  for (const [name, bytes] of Object.entries(discs)) it(`a disc ${name} is taken`, () => check(bytes))

  const others: Readonly<Record<string, Buffer>> = {
    'nothing': Buffer.alloc(0),
    'zeros': Buffer.alloc(100_000),
    'text': Buffer.from('x'),
    'a disc that ends before it says what it is': randomDisc(40_000).subarray(0, 0x8003),
    'a gzip file': signed('\x1f\x8b\x08', 0),
    'a qcow2 disk': signed('QFI\xfb', 0),
  } // biome-ignore format: keys alike
  for (const [name, bytes] of Object.entries(others))
    it(`${name} is no disc`, () => assert.rejects(check(bytes), { name: 'BadDiskError', message: /not a disc image/ }))
})
