// Uploaded disks: recognised by content, hostile ones refused by our own reader, good ones become the same raw disk that
// QEMU makes of them.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { exec } from '../platform/exec.ts'
import { normaliseDisk } from './normalise.ts'
import { BadDiskError, recogniseDisk } from './qcow2/header.ts'
import { zstdFrameBytes } from './qcow2/read.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-uploads-'))
after(() => fs.rm(root, { recursive: true, force: true }))
const file = (name: string) => path.join(root, name)
const mib = 2 ** 20
const allowed = { maxDataBytes: 64 * mib }
const size = 6 * mib + 512
const disk = Buffer.alloc(size)

/** A copy is given away each time. */
async function normalise(source: string, options = allowed) {
  await fs.copyFile(source, file('upload'))
  await fs.rm(file('out.raw'), { force: true })
  return normaliseDisk(file('upload'), file('out.raw'), options)
}

async function refused(source: string, expected: RegExp, options = allowed) {
  const refusal = (error: unknown) => error instanceof BadDiskError && expected.test(error.message)
  await assert.rejects(normalise(source, options), refusal)
  assert.deepEqual(
    (await fs.readdir(root)).filter((name) => name.includes('unfinished') || name === 'out.raw'),
    [],
  )
  assert.ok((await fs.readFile(file('upload'))).equals(await fs.readFile(source)), 'the upload is as it was')
}

before(async () => {
  for (let at = 0; at < 3 * mib; at += 1) disk[at] = at % 7 === 0 ? Math.imul(at, 2_654_435_761) >>> 11 : at >> 8
  disk.fill('end', size - 100_000)
  await fs.writeFile(file('disk.raw'), disk)
  await exec('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', file('disk.raw'), file('plain.qcow2')])
})

describe('good uploads', () => {
  const conversions: Record<string, readonly string[]> = {
    plain: [],
    'version 2': ['-o', 'compat=0.10'],
    'small clusters': ['-o', 'cluster_size=4k'],
    'large clusters': ['-o', 'cluster_size=2M'],
    'compressed by zlib': ['-c'],
    'compressed by zstd': ['-c', '-o', 'compression_type=zstd'],
    'compressed in large clusters': ['-c', '-o', 'cluster_size=1M'],
    'compressed in small clusters': ['-c', '-o', 'cluster_size=4k'],
    'compressed by zstd in small clusters': ['-c', '-o', 'compression_type=zstd,cluster_size=4k'],
    'compressed by zstd in large clusters': ['-c', '-o', 'compression_type=zstd,cluster_size=2M'],
    'lazy and preallocated': ['-o', 'lazy_refcounts=on,preallocation=metadata'],
  }
  for (const [name, options] of Object.entries(conversions)) {
    it(`good uploads: qcow2, ${name}`, async () => {
      await exec('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...options, file('disk.raw'), file('good.qcow2')])
      assert.deepEqual(await normalise(file('good.qcow2')), { format: 'qcow2', virtualSizeBytes: size })
      assert.ok((await fs.readFile(file('out.raw'))).equals(disk))
      await assert.rejects(fs.stat(file('upload')), { code: 'ENOENT' })
    })
  }

  it('good uploads: qcow2 of compressed clusters that are as small as can be', async () => {
    const same = Buffer.alloc(8 * mib, 1)
    await fs.writeFile(file('same.raw'), same)
    for (const compression of ['zlib', 'zstd'])
      for (const clusters of ['4k', '64k', '2M']) {
        const options = `compression_type=${compression},cluster_size=${clusters}`
        const made = ['-c', '-o', options, file('same.raw'), file('good.qcow2')]
        await exec('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', ...made])
        await normalise(file('good.qcow2'))
        assert.ok((await fs.readFile(file('out.raw'))).equals(same), options)
      }
  })

  const packed: Record<string, (name: string) => Promise<void>> = {
    raw: (name) => fs.writeFile(name, disk),
    gzip: (name) => fs.writeFile(name, gzipSync(disk, { level: 1 })),
    zstd: (name) => fs.writeFile(name, zstdCompressSync(disk)),
    xz: async (name) => {
      await fs.copyFile(file('disk.raw'), name)
      await exec('xz', ['-0', '--suffix=.xz', name])
      await fs.rename(`${name}.xz`, name)
    },
  }
  for (const [format, pack] of Object.entries(packed)) {
    it(`good uploads: ${format}, recognised by content`, async () => {
      await pack(file('packed'))
      assert.deepEqual(await normalise(file('packed')), { format, virtualSizeBytes: size })
      assert.ok((await fs.readFile(file('out.raw'))).equals(disk))
    })
  }

  it('good uploads: qcow2 inside gzip', async () => {
    await fs.writeFile(file('packed'), gzipSync(await fs.readFile(file('plain.qcow2'))))
    assert.deepEqual(await normalise(file('packed')), { format: 'gzip', virtualSizeBytes: size })
    assert.ok((await fs.readFile(file('out.raw'))).equals(disk))
  })

  it('good uploads: zstd frames are measured as the format has it', () => {
    for (const length of [1, 300, 70_000, 200_000]) {
      const frame = zstdCompressSync(disk.subarray(0, length))
      assert.equal(zstdFrameBytes(Buffer.concat([frame, Buffer.alloc(300, 0xfd)])), frame.length)
    }
    assert.equal(recogniseDisk(Buffer.alloc(0)), 'raw')
  })
})

describe('hostile uploads', () => {
  /** Where the first tables of the plain file are. */
  const l1Of = (bytes: Buffer) => Number(bytes.readBigUInt64BE(40))
  const l2Of = (bytes: Buffer) => Number(bytes.readBigUInt64BE(l1Of(bytes)) & 0x00ff_ffff_ffff_fe00n)
  const attacks: Record<string, [(bytes: Buffer) => void, RegExp]> = {
    'a backing file': [(b) => { b.write('/etc/passwd', 60_000); b.writeBigUInt64BE(60_000n, 8); b.writeUInt32BE(11, 16) }, /backing file/],
    'a json: backing file': [(b) => { b.write('json:{"driver":"file"}', 60_000); b.writeBigUInt64BE(60_000n, 8); b.writeUInt32BE(22, 16) }, /backing file/],
    'a backing file without a name': [(b) => b.writeUInt32BE(11, 16), /backing file/],
    'a backing name outside the header': [(b) => { b.writeBigUInt64BE(2n ** 62n, 8); b.writeUInt32BE(11, 16) }, /backing file/],
    'an external data file': [(b) => b.writeBigUInt64BE(4n, 72), /another file/],
    'the name of an external data file': [(b) => { b.writeUInt32BE(0x44415441, b.readUInt32BE(100)); b.writeUInt32BE(4, b.readUInt32BE(100) + 4) }, /another file/],
    encryption: [(b) => b.writeUInt32BE(1, 32), /encrypted/],
    'LUKS encryption': [(b) => b.writeUInt32BE(2, 32), /encrypted/],
    'an encryption header': [(b) => b.writeUInt32BE(0x0537be77, b.readUInt32BE(100)), /encrypted/],
    'internal snapshots': [(b) => b.writeUInt32BE(1, 60), /snapshots/],
    'the corrupt mark': [(b) => b.writeBigUInt64BE(2n, 72), /corrupt/],
    'extended L2 entries': [(b) => b.writeBigUInt64BE(16n, 72), /extended/],
    'an unknown feature': [(b) => b.writeBigUInt64BE(32n, 72), /unsupported|not supported/],
    'an unknown feature far up': [(b) => b.writeBigUInt64BE(2n ** 63n, 72), /unsupported|not supported/],
    'a petabyte': [(b) => b.writeBigUInt64BE(2n ** 50n, 24), /64 TiB/],
    'the largest size there is': [(b) => b.writeBigUInt64BE(2n ** 64n - 512n, 24), /64 TiB/],
    'no size': [(b) => b.writeBigUInt64BE(0n, 24), /sector size/],
    'clusters of 1 byte': [(b) => b.writeUInt32BE(0, 20), /clusters/],
    'clusters of 2 GiB': [(b) => b.writeUInt32BE(31, 20), /clusters/],
    'another version': [(b) => b.writeUInt32BE(4, 4), /version 4/],
    'a header of odd length': [(b) => b.writeUInt32BE(0xffff_fff8, 100), /length/],
    'an endless extension': [(b) => { b.writeUInt32BE(0x1234, b.readUInt32BE(100)); b.writeUInt32BE(0xffff_ffff, b.readUInt32BE(100) + 4) }, /extension/],
    'a first table outside': [(b) => b.writeBigUInt64BE(2n ** 40n, 40), /outside/],
    'a first table too short': [(b) => b.writeUInt32BE(0, 36), /L1 table/],
    'a first table too long': [(b) => b.writeUInt32BE(2 ** 31, 36), /L1 table/],
    'a second table outside': [(b) => b.writeBigUInt64BE(2n ** 45n, l1Of(b)), /outside/],
    'a second table in the header': [(b) => b.writeBigUInt64BE(512n, l1Of(b)), /outside/],
    'reserved bits in the first table': [(b) => b.writeBigUInt64BE(b.readBigUInt64BE(l1Of(b)) | 1n, l1Of(b)), /invalid entries/],
    'a cluster outside': [(b) => b.writeBigUInt64BE(2n ** 45n, l2Of(b)), /outside/],
    'reserved bits in a second table': [(b) => b.writeBigUInt64BE(2n, l2Of(b)), /invalid entries/],
    'a cluster used twice': [(b) => b.writeBigUInt64BE(b.readBigUInt64BE(l2Of(b)), l2Of(b) + 8), /same bytes/],
    'its own table as data': [(b) => b.writeBigUInt64BE(BigInt(l2Of(b)), l2Of(b)), /same bytes/],
    'a compressed cluster outside': [(b) => b.writeBigUInt64BE(2n ** 62n + 2n ** 50n, l2Of(b)), /outside/],
    'a compressed cluster of rubbish': [(b) => b.writeBigUInt64BE(2n ** 62n + 2n ** 54n + 70_000n, l2Of(b)), /damaged/],
    'an unknown compression': [(b) => { b.writeBigUInt64BE(8n, 72); b.writeUInt8(2, 104) }, /compression|contradicts/],
  } // biome-ignore format: a table
  for (const [name, [attack, expected]] of Object.entries(attacks)) {
    it(`hostile uploads are refused: ${name}`, async () => {
      const bytes = await fs.readFile(file('plain.qcow2'))
      attack(bytes)
      await fs.writeFile(file('bad.qcow2'), bytes)
      await refused(file('bad.qcow2'), expected)
    })
  }

  it('hostile uploads are refused: one compressed cluster for all of the disk', async () => {
    await exec('qemu-img', ['create', '-f', 'qcow2', file('bad.qcow2'), '512M'])
    const empty = await fs.readFile(file('bad.qcow2'))
    const head = Buffer.concat([empty], Math.ceil(empty.length / 65_536) * 65_536)
    const table = Buffer.alloc(65_536)
    head.writeBigUInt64BE(2n ** 63n + BigInt(head.length), l1Of(head))
    for (let at = 0; at < table.length; at += 8)
      table.writeBigUInt64BE(2n ** 62n + BigInt(head.length + table.length), at)
    await fs.writeFile(file('bad.qcow2'), Buffer.concat([head, table, deflateRawSync(Buffer.alloc(65_536))]))
    await refused(file('bad.qcow2'), /same bytes/)
  })

  it('hostile uploads are refused when cut short anywhere, and never crash us', async () => {
    const bytes = await fs.readFile(file('plain.qcow2'))
    for (const length of [4, 71, 103, 4_096, 65_536, l1Of(bytes), l2Of(bytes) + 100, l2Of(bytes) + 65_536]) {
      await fs.writeFile(file('bad.qcow2'), bytes.subarray(0, length))
      await refused(file('bad.qcow2'), /./)
    }
  })

  it('hostile uploads are refused when they hold or expand to more than is allowed', async () => {
    await refused(file('plain.qcow2'), /more than the/, { maxDataBytes: mib })
    await fs.writeFile(file('bomb'), gzipSync(Buffer.alloc(80 * mib, 1)))
    await refused(file('bomb'), /expands to more/)
    await fs.writeFile(file('bomb'), gzipSync(disk).subarray(0, 50_000))
    await refused(file('bomb'), /damaged or incomplete/)
    await fs.writeFile(file('bomb'), Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 1, 2, 3]))
    await refused(file('bomb'), /damaged or incomplete/)
  })
})
