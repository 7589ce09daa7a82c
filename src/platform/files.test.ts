// Files that are whole or not there.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { writeFileWhole } from './files.ts'

it('a file that is written whole has its text and no temporary file beside it, for its owner only', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-files-'))
  try {
    const file = path.join(folder, 'x.json')
    for (const text of ['', 'short', 'ü'.repeat(100_000), 'shorter']) {
      writeFileWhole(file, text)
      assert.equal(await fs.readFile(file, 'utf8'), text)
    }
    assert.deepEqual(await fs.readdir(folder), ['x.json'])
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    assert.throws(() => writeFileWhole(path.join(folder, 'none', 'x'), ''), { code: 'ENOENT' })
  } finally {
    await fs.rm(folder, { recursive: true })
  }
})
