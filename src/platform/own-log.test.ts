// The rotation of a log file that another process has opened.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { rotate } from './own-log.ts'

it('the log file of the program is moved to FILE.1, and later lines begin an empty file', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-own-log-'))
  const file = path.join(folder, 'svc3.log')
  const writer = await fs.open(file, 'a')
  try {
    assert.equal(await rotate(path.join(folder, 'none'), 0), false)
    await writer.write('first\n')
    assert.equal(await rotate(file, 100), false)
    assert.equal(await rotate(file, 5), true)
    await writer.write('second\n')
    assert.equal(await fs.readFile(file, 'utf8'), 'second\n')
    assert.equal(await fs.readFile(`${file}.1`, 'utf8'), 'first\n')
  } finally {
    await writer.close()
    await fs.rm(folder, { recursive: true })
  }
})
