// What is refused as no disk, with files as other programs make them, and what may be one.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { headBytes, whyNoDisk } from './foreign-files.ts'
import { normaliseDisk } from './normalise.ts'

let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-foreign-'))
})
after(() => fs.rm(folder, { recursive: true, force: true }))

const judge = (bytes: Buffer): string | undefined =>
  whyNoDisk(bytes.subarray(0, headBytes), bytes.subarray(-512), bytes.length)
const take = async (bytes: Buffer): Promise<unknown> => {
  const source = path.join(folder, 'source')
  await fs.writeFile(source, bytes)
  return normaliseDisk(source, path.join(folder, 'target'), { maxDataBytes: 2 ** 30 })
}

describe('a file that is no disk', () => {
  for (const format of ['vmdk', 'vpc', 'vhdx', 'vdi', 'qed', 'parallels'])
    it(`a file that is no disk is known, as qemu-img makes it: ${format}`, async () => {
      const raw = path.join(folder, 'disk.raw')
      await fs.writeFile(raw, randomBytes(2 ** 20))
      const made = path.join(folder, `disk.${format}`)
      execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', format, raw, made])
      const problem = judge(await fs.readFile(made))
      assert.match(problem ?? '', /^it is a (VMDK|VHDX?|VDI|QED|Parallels) disk: convert it with qemu-img/)
    })

  it('a file that is no disk is a VHD of fixed size by its last sector', async () => {
    const raw = path.join(folder, 'disk.raw')
    await fs.writeFile(raw, randomBytes(2 ** 20))
    const made = path.join(folder, 'fixed.vhd')
    execFileSync('qemu-img', ['convert', '-f', 'raw', '-O', 'vpc', '-o', 'subformat=fixed', raw, made])
    assert.match(judge(await fs.readFile(made)) ?? '', /a VHD disk/)
  })

  it('a file that is no disk is an archive, a document or text', () => {
    for (const [bytes, what] of [
      [Buffer.concat([Buffer.from('PK\x03\x04'), randomBytes(508)]), /ZIP archive: unpack it/],
      [Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(503)]), /PDF/],
      [Buffer.from('<!DOCTYPE html><html>'.padEnd(1_024, 'näch\n')), /text or a web page/],
      [Buffer.from('é'.repeat(4_096)).subarray(0, 4_096), /text/],
      [Buffer.alloc(1_000), /has 1000 bytes, not a multiple of/],
    ] as const)
      assert.match(judge(bytes) ?? '', what)
  })

  it('a file that is no disk is refused, also compressed, and leaves no file', async () => {
    const page = Buffer.from('<html>404</html>\n'.repeat(1_000))
    for (const bytes of [page, gzipSync(page), randomBytes(777)]) {
      await assert.rejects(take(bytes), /Unusable disk: it (is text|has 777 bytes)/)
      await assert.rejects(fs.stat(path.join(folder, 'target')), { code: 'ENOENT' })
    }
  })
})

describe('a file that may be a disk', () => {
  it('a file that may be a disk is anything else: a boot sector, zeros, tables, a file system, noise', async () => {
    const sector = Buffer.alloc(4_096)
    sector.writeUInt16LE(0xaa55, 510)
    const gpt = Buffer.alloc(4_096)
    gpt.write('EFI PART', 512)
    const xfs = Buffer.alloc(4_096)
    xfs.write('XFSB')
    for (const bytes of [sector, Buffer.alloc(512), gpt, xfs, randomBytes(4_096)]) {
      assert.equal(judge(bytes), undefined)
      await take(bytes)
    }
  })
})
