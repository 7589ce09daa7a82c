// Sparse files: what is written is what was given, and the digest is that of the content and its place, not of the holes.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { digestOf, writeSparseFile } from './sparse.ts'

const signal = new AbortController().signal
const mebibyte = 2 ** 20

describe('sparse files of guest images', () => {
  const content = (place: number): Buffer => {
    const data = Buffer.alloc(9 * mebibyte + 5)
    data.write('content', place)
    return data
  }

  it('a sparse file reads as what was written, and takes little of the disk', async () => {
    await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), 'svc3-sparse-'))
    const file = path.join(folder.path, 'disk')
    await writeSparseFile(file, content(5 * mebibyte))
    assert.ok((await fs.readFile(file)).equals(content(5 * mebibyte)))
    assert.ok((await fs.stat(file)).blocks * 512 < mebibyte)
  })

  it('the digest of an image is that of its content and place, whether zeros are holes or written', async () => {
    await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), 'svc3-sparse-'))
    const digest = async (data: Buffer, write: (file: string, data: Buffer) => Promise<void>): Promise<string> => {
      const file = path.join(folder.path, 'disk')
      await fs.rm(file, { force: true })
      await write(file, data)
      return digestOf(file, signal)
    }
    const sparse = await digest(content(70_000), writeSparseFile)
    assert.match(sparse, /^[0-9a-f]{64}$/)
    assert.equal(await digest(content(70_000), fs.writeFile), sparse)
    assert.notEqual(await digest(content(70_001), writeSparseFile), sparse)
    assert.notEqual(await digest(content(70_000 + 65_536), writeSparseFile), sparse)
  })
})
