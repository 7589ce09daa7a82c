// The EFI partition: mtools reads back what was written, and the same files give the same bytes.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { writeFat } from './fat.ts'
import { run } from './programs.ts'
import { Tree } from './tree.ts'

const { signal } = new AbortController()
const sizeBytes = 15 * 1024 * 1024
const offsetBytes = 1024 * 1024
const big = Buffer.alloc(100_001, 'grub')

it('a FAT file system is the same each time, has every file, and refuses what does not fit', async () => {
  await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), 'svc3-fat-'))
  const write = async (name: string, tree: Tree): Promise<string> => {
    const file = path.join(folder.path, name)
    await fs.writeFile(file, '')
    await fs.truncate(file, offsetBytes + sizeBytes)
    await writeFat(file, tree, { offsetBytes, sizeBytes, label: 'LABEL', time: '1700000000', signal })
    return file
  }
  const tree = new Tree().file('EFI/BOOT/BOOTX64.EFI', big).file('EFI/DEBIAN/GRUB.CFG', 'boot\n')
  const file = await write('one', tree)
  assert.ok((await fs.readFile(file)).equals(await fs.readFile(await write('two', tree))))
  const image = ['-i', `${file}@@${offsetBytes}`]
  assert.ok((await run('mcopy', [...image, '::EFI/BOOT/BOOTX64.EFI', '-'], { signal })).output.equals(big))
  assert.equal(`${(await run('mcopy', [...image, '::EFI/DEBIAN/GRUB.CFG', '-'], { signal })).output}`, 'boot\n')
  await assert.rejects(write('full', new Tree().file('BIG', Buffer.alloc(2 * sizeBytes))))
})
