// The digest of an image is that of its content and its position, whether zeros are holes or written.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { digestOf } from './digest.ts'

it('the digest of a disk is that of its content and position, whether zeros are holes or written', async () => {
  await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), 'svc3-digest-'))
  const file = path.join(folder.path, 'disk')
  const digest = (): Promise<string> => digestOf(file, new AbortController().signal)
  const written = async (position: number): Promise<string> => {
    const data = Buffer.alloc(9 * 2 ** 20 + 5)
    data.write('content', position)
    await fs.writeFile(file, data)
    return digest()
  }
  const full = await written(70_000)
  await fs.writeFile(file, Buffer.alloc(0))
  await fs.truncate(file, 9 * 2 ** 20 + 5)
  const handle = await fs.open(file, 'r+')
  await handle.write('content', 70_000)
  await handle.close()
  assert.equal(await digest(), full)
  assert.notEqual(await written(70_001), full)
  assert.notEqual(await written(70_000 + 65_536), full)
})
