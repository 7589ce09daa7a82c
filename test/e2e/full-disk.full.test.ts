// A server whose disk is full in the middle of an upload or a pull: see test/e2e/full-disk-images.ts.
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { makeFolder } from '../support/processes/dev-server.ts'

const script = path.resolve(import.meta.dirname, './full-disk-images.ts')

describe('a disk that is full', () => {
  it('a disk that is full in the middle of an upload or a pull ends it with words, leaves nothing, and is over when there is room', async () => {
    const [folder, away] = [await makeFolder(), await makeFolder()]
    try {
      const own = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
      await promisify(execFile)('unshare', [...own, process.execPath, script, folder, away])
    } finally {
      for (const each of [folder, away]) await fs.rm(each, { recursive: true, force: true })
    }
  })
})
